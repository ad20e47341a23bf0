"""`tidelog` for tests: in this process where that is enough, else as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Self

import orjson
from typer.testing import CliRunner, Result

from tidelog.cli.commands import app

SECONDS = 30.0
"""The bound of every wait: far beyond what anything here takes."""

SHOP = """\
import asyncio
import os
import time

from tidelog import App, JobContext, ObserverContext

app = App()
not_an_app = 1


@app.job("greet", queue="greetings", timeout=10)
async def greet(ctx: JobContext, name: str) -> str:
    if name == "\\x1b[31mred":
        raise ValueError(f"no [bold]{name}[/bold]\\nsecond line")
    ctx.add_tag("greeted", name)
    return f"hello {name}"


@app.job("nap", queue="naps")
async def nap(ctx: JobContext, marker: str, seconds: float) -> str:
    open(marker, "w").close()
    await asyncio.sleep(seconds)
    return "rested"


@app.job("deaf", queue="naps")
async def deaf(ctx: JobContext, marker: str) -> None:
    open(marker, "w").close()
    while not ctx.cancelled.is_set():
        await asyncio.sleep(0.01)
    await asyncio.shield(asyncio.sleep(3600))


@app.job("stubborn", queue="naps")
async def stubborn(ctx: JobContext, marker: str) -> None:
    open(marker, "w").close()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


@app.job("block", queue="naps")
async def block(ctx: JobContext, marker: str, release: str) -> str:
    open(marker, "w").close()
    while not os.path.exists(release):
        time.sleep(0.01)  # on the loop itself: nothing else of it runs meanwhile
    return "released"


@app.job("twice", queue="greetings")
async def twice(ctx: JobContext, parent: str) -> str:
    return 2 * str(await ctx.dependency_output(parent))


@app.observer("watch", states=["Succeeded", "DeadLettered"], queue="watched", timeout=5)
async def watch(ctx: ObserverContext) -> None:
    job = await ctx.job()
    with open("watched.txt", "a") as file:
        print(job.job_id, job.payload_value, file=file)


@app.observer("stuck", queue="sticky", timeout=0.1)
async def stuck(ctx: ObserverContext) -> None:
    open("stuck", "w").close()
    time.sleep(1_000_000)  # on its event loop
"""
"""An application with jobs that succeed, fail, take long and read what others have found."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where an installation of a test is, and the commands on it."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, folder: Path, partitions: int = 3) -> Self:
        """An installation in that folder, with the application `shop`; nothing runs yet."""
        (folder / "shop.py").write_text(SHOP, encoding="utf-8")
        return cls(
            folder,
            {
                "TIDELOG_LOG": f"sqlite:{folder}/log.db",
                "TIDELOG_POSTGRES": f"embedded:{folder}/postgres",
                "TIDELOG_PARTITIONS": str(partitions),
            },
        )

    def run(self, *arguments: str) -> Result:
        """A command in this process."""
        return CliRunner().invoke(app, arguments, env=dict(self.variables))

    def json(self, *arguments: str) -> object:
        """What a command prints with `--json`, which must be one document and nothing else."""
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        read: object = orjson.loads(result.stdout)
        return read

    def start(self, *arguments: str) -> Process:
        """A command as a process of its own."""
        return Process.start(arguments, self.folder, self.variables)


@dataclass(slots=True)
class Process:
    """`tidelog …` as a process; what it says on standard error is read as it comes."""

    popen: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)
    _lines: Queue[str | None] = field(default_factory=Queue)

    @classmethod
    def start(cls, arguments: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Self:
        """Start it in that folder."""
        popen = subprocess.Popen(
            [sys.executable, "-m", "tidelog", *arguments],
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        process = cls(popen)
        Thread(target=process._read, daemon=True).start()
        return process

    def expect(self, text: str) -> str:
        """Wait until a line with that text is said on standard error, and return it."""
        while (line := self._next()) is not None:
            if text in line:
                return line
        raise AssertionError(f"{text!r} was never said, but this:\n{''.join(self.said)}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.popen.send_signal(number)

    def end(self) -> int:
        """Wait until it has ended; its exit code, negative for a signal."""
        return self.popen.wait(SECONDS)

    def output(self) -> str:
        """What it printed, once it has ended. For processes that print little."""
        assert self.popen.stdout is not None
        return self.popen.stdout.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            self.popen.terminate()  # not killed: it may be the last user of an embedded Postgres
            try:
                self.popen.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait(SECONDS)
        for stream in (self.popen.stdout, self.popen.stderr):
            if stream is not None:
                stream.close()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        try:
            for line in self.popen.stderr:
                self.said.append(line)
                self._lines.put(line)
        finally:
            self._lines.put(None)

    def _next(self) -> str | None:
        try:
            return self._lines.get(timeout=SECONDS)
        except Empty:
            return None
