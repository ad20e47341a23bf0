"""A SQLite log, and other processes that use the same file."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from tidelog.log.port import Cleanup, TopicSpec
from tidelog.log.sqlite import SqliteLog

SECONDS = 20.0


class Child:
    """Another process, and what it says."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def line(self) -> str:
        """The next line that it says; empty at its end."""
        if self._process.stdout is None:
            raise RuntimeError("the process was started without a pipe")
        return (await asyncio.wait_for(self._process.stdout.readline(), SECONDS)).decode().rstrip("\n")

    async def kill(self) -> None:
        """kill -9."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def lines_left(self) -> list[str]:
        """All that it said, and nobody has read yet."""
        lines = []
        while line := await self.line():
            lines.append(line)
        return lines


Start = Callable[..., Awaitable[Child]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
async def log(path: Path) -> AsyncIterator[SqliteLog]:
    async with await SqliteLog.open(path) as log:
        await log.create_topics(
            [
                TopicSpec("events", 2),
                TopicSpec("state", 1, Cleanup.COMPACT),
                TopicSpec("ping", 1),
                TopicSpec("pong", 1),
            ]
        )
        yield log


@pytest.fixture
async def start(path: Path, log: SqliteLog) -> AsyncIterator[Start]:  # noqa: ARG001 - the topics must be there
    """Start `child.py` in a role; what still runs in the end is killed."""
    children: list[Child] = []

    async def start(role: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Child:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("child.py")),
            role,
            str(path),
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            env=environment,
        )
        child = Child(process)
        children.append(child)
        return child

    yield start
    for child in children:
        await child.kill()
