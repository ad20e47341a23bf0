"""The demonstration as a whole: on odd files, when a check fails, when it is interrupted or killed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidelog.demo.run import run_demo

SECONDS = 60.0


@pytest.fixture
def odd_files(tmp_path: Path) -> Path:
    """A folder with nothing ordinary in it."""
    root = tmp_path / "odd [bold]files[/bold]"
    many = root / "many"
    many.mkdir(parents=True)
    for number in range(40):
        (many / f"{number:02}.txt").write_text(f"file {number}\n", encoding="utf-8")
    (root / "empty folder").mkdir()
    (root / "empty").touch()
    (root / "line\nbreak \x1b[31m").write_text("x", encoding="utf-8")
    (root / os.fsdecode(b"no \xff text")).write_bytes(b"\x00\x01")
    (root / "unïcödé 😀.md").write_text("# hello", encoding="utf-8")
    (root / "100% of a name?#").write_text("y", encoding="utf-8")
    (root / "broken link").symlink_to("nowhere")
    unreadable = root / "unreadable"
    unreadable.write_text("secret", encoding="utf-8")
    unreadable.chmod(0)
    return root


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary folders are made; none of the demonstration's may be left."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert list(folder.glob("tidelog-*")) == []


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """`tidelog demo` as a process, with one stream for all that it says."""
    return subprocess.Popen(
        [sys.executable, "-m", "tidelog", "demo", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """What it says until a line with that text has come."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(f"{text!r} was never said, but this:\n{said}")


def role_processes(said: str) -> list[int]:
    """The numbers of the roles' processes, from what it says."""
    return [int(number) for number in re.findall(r"\(process (\d+)\)", said)]


def wait_until_gone(pids: list[int]) -> None:
    """Wait until none of the processes is there."""
    deadline = time.monotonic() + SECONDS
    while any(Path(f"/proc/{pid}").exists() and _state(pid) != "Z" for pid in pids):
        assert time.monotonic() < deadline, f"of {pids} some are still there"
        os.sched_yield()


def _state(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return "Z"
    return stat.rpartition(")")[2].split()[0]


def postgres_under(folder: Path) -> list[int]:
    """The embedded servers whose data is under a folder."""
    return [int(file.read_text(encoding="utf-8").split("\n")[0]) for file in folder.rglob("postmaster.pid")]


@pytest.mark.usefixtures("temporary")
def test_odd_files_are_hashed_and_every_check_holds(odd_files: Path) -> None:
    with start(odd_files) as process:
        said = read_until(process, "Running:")
        assert process.stdout is not None
        said += process.stdout.read()
        assert process.wait(SECONDS) == 0, said
    assert "10 of 10 checks held." in said
    assert "✗" not in said
    assert "46 files" in said
    assert "symbolic links (1)" in said
    assert "\x1b" not in said
    assert "tidelog demo --keep" in said
    if os.geteuid() != 0:  # nothing is unreadable to root
        assert "of 1 unreadable ones" in said
    wait_until_gone(role_processes(said))


@pytest.mark.usefixtures("temporary")
def test_a_check_that_fails_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "file").write_text("content", encoding="utf-8")
    assert not asyncio.run(run_demo(folder, hasher=lambda _: "0" * 64))
    said = capsys.readouterr().out
    assert "8 of 10 checks held." in said
    assert "✗ SHA-256" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing(odd_files: Path, temporary: Path, number: signal.Signals) -> None:
    with start(odd_files) as process:
        said = read_until(process, "Running:")
        servers = postgres_under(temporary)
        process.send_signal(number)
        assert process.stdout is not None
        said += process.stdout.read()
        assert process.wait(SECONDS) == 1
    assert "interrupted" in said
    assert "Traceback" not in said
    assert servers
    wait_until_gone([*role_processes(said), *servers])


def test_what_is_kept_can_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "file.py").write_text("pass\n", encoding="utf-8")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    done = subprocess.run(
        [sys.executable, "-m", "tidelog", "demo", folder, "--keep"],
        capture_output=True,
        text=True,
        check=True,
    )
    variables = dict(re.findall(r"export (TIDELOG_\w+)=(\S+)", done.stdout))
    commands = re.findall(r"^  (tidelog .*)$", done.stdout, re.MULTILINE)
    assert variables.keys() == {"TIDELOG_LOG", "TIDELOG_POSTGRES", "TIDELOG_PARTITIONS"}
    assert len(commands) >= 4
    for command in commands:
        looked = subprocess.run(
            [sys.executable, "-m", *command.split()],
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
            check=False,
        )
        assert looked.returncode == 0, looked.stderr
        assert looked.stderr == "" or "--after" in looked.stderr


def test_roles_end_with_a_demonstration_that_is_killed(
    odd_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with start(odd_files) as process:
        said = read_until(process, "Running:")
        servers = postgres_under(temporary)
        process.kill()
        process.wait(SECONDS)
    assert servers
    wait_until_gone([*role_processes(said), *servers])


def test_what_is_no_folder_is_wrong_use(tmp_path: Path) -> None:
    with start(tmp_path / "none") as process:
        assert process.wait(SECONDS) == 2
        assert process.stdout is not None
        said = process.stdout.read()
    assert "none" in said
    assert "Traceback" not in said
