"""The measures run, on few jobs, and say what they measured; how fast is not for a test to judge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.providers.kafka import ADDRESS_VARIABLE, GivenBroker
from tests.providers.kafka_broker import Broker

ROOT = Path(__file__).resolve().parents[2]


def run_bench(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=90,
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


def test_a_broker_is_had_as_the_tests_have_theirs(tmp_path: Path, kafka: Broker | GivenBroker) -> None:
    written = tmp_path / "figures.json"
    arguments = ["--log", "kafka", "--only", "pickup", "--jobs", "20", "--concurrency", "4"]

    done = run_bench(*arguments, "--json", str(written), **{ADDRESS_VARIABLE: kafka.address})

    assert done.returncode == 0, done.stderr
    readings = json.loads(written.read_text())["readings"]
    assert {reading["log"] for reading in readings} == {f"kafka://{kafka.address}"}
    assert sum(reading["figure"].startswith("pickup step") for reading in readings) == 4


def test_a_log_that_cannot_be_used_is_named_and_gives_no_figures(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"

    done = run_bench("--only", "enqueue", "--jobs", "1", "--log", "nowhere:", "--json", str(written))

    assert done.returncode == 1
    assert "nowhere:" in done.stderr
    assert not written.exists()
