"""What holds for every command: help, wrong use, what is not there, and no word of a password."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.running import Installation
from typer.testing import CliRunner

from tidelog.cli.commands import app

READING = [
    ["jobs"],
    ["jobs", "--archived"],
    ["job", "q/k"],
    ["history", "q/k"],
    ["history", "q/k", "--from-log"],
    ["why", "q/k"],
    ["queues"],
    ["workers"],
    ["schedules"],
    ["schedule", "q/s"],
    ["observers"],
]
CHANGING = [
    ["enqueue", "w"],
    ["cancel", "q/k"],
    ["requeue", "q/k"],
    ["pause", "q"],
    ["resume", "q"],
    ["limit", "q", "3"],
    ["trigger", "q/s"],
    ["unschedule", "q/s"],
]
ROLES = {"up", "engine", "worker", "projector", "observe", "stats"}
"""They wait for what is not there, but `up`, which makes it."""
OTHERS = {"init", "doctor", "rebuild", "replay", "demo"}


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for name in (
        *("up", "engine", "worker", "projector", "init", "enqueue", "jobs", "job", "history", "cancel"),
        *("requeue", "queues", "pause", "resume", "limit", "replay", "rebuild", "demo"),
    ):
        assert f" {name} " in result.stdout


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"tidelog {version('tidelog')}\n")


def test_help_loads_no_client_of_postgres() -> None:
    """What makes `tidelog --help` slow is not loaded for it."""
    script = (
        "import sys, tidelog.cli.commands as c\n"
        "try: c.app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'asyncpg', 'pydantic', 'sqlite3'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_what_is_said_here_is_said_of_every_command() -> None:
    """A new command belongs in one of the lists, so that its exit codes are looked at."""
    listed = {arguments[0] for arguments in READING + CHANGING} | ROLES | OTHERS
    groups = {group.name for group in app.registered_groups}
    assert {command.name for command in app.registered_commands} | groups == listed


def test_an_interrupt_while_modules_are_imported_leaves_no_traceback(tmp_path: Path) -> None:
    interrupts = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit('went on')\n"
    (tmp_path / "typer.py").write_text(interrupts, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "tidelog", "jobs"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize("arguments", READING + CHANGING + [["rebuild"]], ids=" ".join)
def test_what_is_not_there_is_named_and_what_to_do(installation: Installation, arguments: list[str]) -> None:
    result = installation.run(*arguments)
    assert result.exit_code == 3
    assert str(installation.folder) in result.stderr
    assert "tidelog init" in result.stderr
    assert result.stdout == ""
    assert not (installation.folder / "log.db").exists(), "asking for it must not make it"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["jobs", "--state", "Nonsense"],
        ["jobs", "--limit", "many"],
        ["enqueue", "w", "--payload", "{'single': 'quotes'}"],
        ["enqueue", "w", "--payload", "NaN"],
        ["enqueue", "w", "--due", "tomorrow"],
        ["enqueue", "w", "--due", "2026-01-01T00:00:00"],
        ["enqueue", "w", "--due", "2026-01-01T00:00:00Z", "--delay", "1"],
        ["enqueue", "w", "--delay", "-1"],
        ["enqueue", "w", "--delay", "nan"],
        ["enqueue", "w", "--delay", "inf"],
        ["enqueue", "w", "--delay", "1e300"],
        ["observers", "--json", "redrive", "watch"],
        ["enqueue", "w", "--max-attempts", "0"],
        ["enqueue", "w", "--max-attempts", "1001"],
        ["enqueue", "w", "--max-attempts", "often"],
        ["enqueue", "w", "--delays", "1,,2"],
        ["enqueue", "w", "--delays", "-1"],
        ["enqueue", "w", "--delays", "nan"],
        ["enqueue", "w", "--delays", ",".join(["1"] * 21)],
        ["limit", "q", "many"],
        ["worker", "shop"],
        ["worker", "shop.py:app"],
        ["worker", "shop:app", "--queues", "a", "--weights", "a=1"],
        ["worker", "shop:app", "--weights", "a"],
        ["worker", "shop:app", "--weights", "a=1,a=2"],
        ["worker", "shop:app", "--concurrency", "0"],
        ["worker", "shop:app", "--lease-seconds", "0"],
        ["worker", "shop:app", "--processes", "0"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_2_and_says_why(installation: Installation, arguments: list[str]) -> None:
    result = installation.run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.strip()


@pytest.mark.parametrize("arguments", [*READING, *CHANGING, ["init"], ["doctor"], ["rebuild"]], ids=" ".join)
def test_a_wrong_setting_is_wrong_use_of_every_command(
    installation: Installation, arguments: list[str]
) -> None:
    installation = Installation(
        installation.folder, {**installation.variables, "TIDELOG_PARTITIONS": "several"}
    )
    result = installation.run(*arguments)
    assert result.exit_code == 2
    assert "TIDELOG_PARTITIONS" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_an_unreachable_postgres_is_named_without_its_password_by_every_command(
    installation: Installation,
) -> None:
    """All at once, as each of them waits a few seconds for it."""
    assert installation.run("init").exit_code == 0
    away = {**installation.variables, "TIDELOG_POSTGRES": "postgresql://ann:s3cret@127.0.0.1:1/jobs"}
    need_it = [
        arguments for arguments in READING if "--from-log" not in arguments and arguments != ["observers"]
    ]
    elsewhere = Installation(installation.folder, away)
    with ExitStack() as stack:
        commands = [stack.enter_context(elsewhere.start(*arguments)) for arguments in need_it]
        for arguments, command in zip(need_it, commands, strict=True):
            assert command.end() == 3, arguments
            said = "".join(command.said)
            assert "ann@127.0.0.1:1/jobs" in said, arguments
            assert "s3cret" not in said
            assert "Traceback" not in said
            assert command.output() == ""


def test_a_log_that_is_no_log_is_named(installation: Installation) -> None:
    (installation.folder / "log.db").write_bytes(b"no SQLite file, but long enough to look like one" * 100)
    result = installation.run("enqueue", "w")
    assert result.exit_code == 3
    assert "log.db" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_engine_that_does_not_answer_is_unreachable(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    result = installation.run("pause", "greetings", "--timeout", "0.2")
    assert result.exit_code == 3
    assert "tidelog engine" in result.stderr
    assert f"sqlite:{installation.folder}/log.db" in result.stderr
    assert result.stdout == ""


def test_a_log_without_topics_asks_for_init(installation: Installation) -> None:
    elsewhere = Installation(installation.folder, {**installation.variables, "TIDELOG_PREFIX": "elsewhere"})
    assert installation.run("init").exit_code == 0
    result = elsewhere.run("enqueue", "w")
    assert result.exit_code == 3
    assert "tidelog init" in result.stderr


def test_runs_as_a_module_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tidelog", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("tidelog ")
