"""The measures run, on few jobs, and say what they measured; how fast is not for a test to judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=90
    )


def test_every_measure_gives_its_figures_on_an_embedded_log(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"

    done = run_bench("--jobs", "20", "--concurrency", "4", "--json", str(written))

    assert done.returncode == 0, done.stderr
    figures = json.loads(written.read_text())
    assert {reading["measure"] for reading in figures["readings"]} == {
        "core",
        "enqueue",
        "drain",
        "sustained",
        "pickup",
    }
    assert all(reading["value"] >= 0 for reading in figures["readings"])
    assert figures["machine"]["cores"] >= 1
    assert "no-op drain" in done.stdout


def test_a_log_that_cannot_be_used_is_named_and_gives_no_figures(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"

    done = run_bench("--only", "enqueue", "--jobs", "1", "--log", "nowhere:", "--json", str(written))

    assert done.returncode == 1
    assert "nowhere:" in done.stderr
    assert not written.exists()
