"""`tidelog replay` (contract section 6): the script's place, and what is no script."""

from __future__ import annotations

from pathlib import Path

import orjson
from typer.testing import CliRunner

from tidelog.cli.commands import app

SCRIPT = b"""\
{"at": 0, "command": {"type": "enqueue", "job_id": "q/a", "wire_name": "w"}}
{"at": 1, "command": {"type": "nonsense"}}
"""


def test_reads_a_file_or_standard_input(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_bytes(SCRIPT)
    from_file = CliRunner().invoke(app, ["replay", str(script), "--state"])
    from_stdin = CliRunner().invoke(app, ["replay", "-", "--state"], input=SCRIPT)
    assert from_file.exit_code == from_stdin.exit_code == 0
    assert from_file.stdout == from_stdin.stdout
    lines = [orjson.loads(line) for line in from_file.stdout.splitlines()]
    assert [next(iter(line)) for line in lines] == ["transition", "reply", "reply", "job"]
    assert lines[-1]["job"]["job_id"] == "q/a"


def test_bad_input_is_2_with_the_line_after_what_came_before() -> None:
    result = CliRunner().invoke(app, ["replay", "-"], input=SCRIPT + b"no json\n")
    assert result.exit_code == 2
    assert "line 3" in result.stderr
    assert len(result.stdout.splitlines()) == 3


def test_a_missing_file_is_wrong_use(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(tmp_path / "none.jsonl")])
    assert result.exit_code == 2
    assert "none.jsonl" in result.stderr
