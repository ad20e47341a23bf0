"""Roles as child processes that end with their parent, however it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, Self

from tidelog.cli.exits import ExitCode, GaveUp
from tidelog.pausing import pause

logger = logging.getLogger("tidelog.cli")

_PAUSE_SECONDS: Final = 1.0
"""Before a process that was killed is started again."""
_KILL_SECONDS: Final = 15.0
"""Beyond the grace time, for a process to end by itself before it is killed."""


class RoleProcess:
    """`tidelog ROLE …` in a process of its own.

    It is in a process group of its own, so that Ctrl-C reaches the parent alone, which decides what to do.
    And it holds the reading end of a pipe whose other end only the parent has, so that it stops when the
    parent is gone, also one that was killed.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self.name = name
        self._process = process
        self._lifeline = lifeline

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        stderr: IO[bytes] | None = None,
    ) -> Self:
        """Start a role. `stderr` is where it logs; to this process's standard error when absent."""
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tidelog",
                *arguments,
                "--lifeline",
                str(reading),
                env=environment,
                cwd=directory,
                stdin=asyncio.subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=(reading,),
                process_group=0,
            )
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        return cls(arguments[0], process, writing)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended: an exit code, or the negative number of a signal; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until it has ended."""
        return await self._process.wait()

    def ask_to_stop(self) -> None:
        """Ask for a graceful stop; a second time, to hurry."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    async def end(self, *, timeout: float) -> int:
        """Wait until it has ended, for `timeout` seconds; then kill it. The exit code."""
        try:
            async with asyncio.timeout(timeout):
                return await self._process.wait()
        except TimeoutError:
            logger.warning(
                "%s (process %d) did not end in %.0f s: it is killed", self.name, self.pid, timeout
            )
            return await self._killed()
        except asyncio.CancelledError:
            await self._killed()
            raise
        finally:
            self._cut()

    async def _killed(self) -> int:
        if self._process.returncode is None:
            self._process.kill()
        return await self._process.wait()

    def _cut(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


async def keep_running(
    arguments: Sequence[str], count: int, stop: asyncio.Event, *, grace_seconds: float
) -> None:
    """Run `count` processes of a role until `stop` is set, then end them all gracefully.

    One that was killed is started again. One that gives up by itself has said why, and the next would say the
    same: then all are ended.

    Raises:
        GaveUp: a process did; its exit code comes along.
    """
    gave_up: list[int] = []

    async def keep_one() -> None:
        while not stop.is_set():
            role = await RoleProcess.start(arguments)
            asked = asyncio.ensure_future(stop.wait())
            ended = asyncio.ensure_future(role.wait())
            try:
                await asyncio.wait([asked, ended], return_when=asyncio.FIRST_COMPLETED)
            finally:
                asked.cancel()
                ended.cancel()
                role.ask_to_stop()
                code = await role.end(timeout=grace_seconds + _KILL_SECONDS)
            if stop.is_set():
                return
            if code >= 0:
                gave_up.append(code)
                stop.set()
                return
            logger.error("%s (process %d) was killed by signal %d", role.name, role.pid, -code)
            await pause(stop, _PAUSE_SECONDS)

    await asyncio.gather(*(keep_one() for _ in range(count)))
    if gave_up:
        # A worker that ends by itself without a failure does not exist: that is one too.
        raise GaveUp(arguments[0], gave_up[0] or ExitCode.REFUSED)
