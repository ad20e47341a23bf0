"""`tidelog doctor` on the command line: its lines, its document, its exit codes."""

from __future__ import annotations

import orjson
import pytest
from tests.cli.running import Installation

CHECKS = [
    "log",
    "postgres",
    "topics",
    "owners",
    "lag",
    "projection",
    "queues",
    "observers",
    "clock",
    "rejects",
]


def test_a_running_installation_is_well(running: Installation) -> None:
    result = running.run("doctor")
    assert result.exit_code == 0, result.output
    lines = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert list(dict.fromkeys(check for _, check, _ in lines)) == CHECKS
    assert {health for health, _, _ in lines} <= {"ok", "warning"}


def test_only_what_was_asked_for(running: Installation) -> None:
    found = running.json("doctor", "--only", "topics, owners")
    assert isinstance(found, dict)
    assert found["health"] == "ok"
    assert [finding["check"] for finding in found["findings"]] == ["topics", "owners", "owners"]


def test_what_is_wrong_is_1_and_says_what_to_do(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    result = installation.run("doctor")
    assert result.exit_code == 1
    assert "no engine runs: nothing is decided there -> Start one: `tidelog engine`." in result.stdout


def test_what_is_not_there_is_3_and_is_not_made(installation: Installation) -> None:
    result = installation.run("doctor", "--json")
    assert result.exit_code == 3
    findings = orjson.loads(result.stdout)["findings"]
    assert [(finding["check"], finding["unreachable"]) for finding in findings] == [
        ("log", True),
        ("postgres", True),
    ]
    assert all("tidelog init" in finding["message"] for finding in findings)
    assert not (installation.folder / "log.db").exists()
    assert not (installation.folder / "postgres").exists()


def test_it_makes_no_schema(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    elsewhere = Installation(installation.folder, {**installation.variables, "TIDELOG_PREFIX": "elsewhere"})
    result = elsewhere.run("doctor", "--only", "topics")
    assert result.exit_code == 1
    assert "missing: elsewhere.commands" in result.stdout


@pytest.mark.parametrize("names", ["heart", "log,,topics", ""])
def test_a_check_that_is_none_is_wrong_use(running: Installation, names: str) -> None:
    result = running.run("doctor", "--only", names)
    assert result.exit_code == 2
    assert "There are: log, postgres" in result.stderr
