"""Several worker processes under one: starts them, passes the stop on, replaces one that died.

Each child is a worker of its own, with its own id and its own connection; the supervisor touches no log.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from signal import SIGKILL, SIGTERM

from tidelog_events.errors import TidelogError

_logger = logging.getLogger("tidelog.worker")

SUPERVISOR_VARIABLE = "TIDELOG_SUPERVISOR"
"""Set for the children: the supervisor's process id. A worker whose parent is another by now should stop."""
WRONG_USE = 2
"""The exit code of a command that can never work as it was given (contract section 9): not tried again."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
_LONG_LIFE = 60.0
"""Seconds after which a child counts as having worked: its next death is the first again."""
_LOOK_SECONDS = 1.0


class ChildrenFail(TidelogError):
    """The worker processes end at once with the exit code for wrong use."""


@dataclass(frozen=True, slots=True)
class WorkerProcesses:
    """A fixed number of worker processes.

    Attributes:
        command: what each child runs.
        count: how many.
        stop_seconds: how long a child may take to end after SIGTERM before it is killed. Above the workers'
            own grace time.
        environment: of the children; None for this process's own.
    """

    command: Sequence[str]
    count: int
    stop_seconds: float
    environment: Mapping[str, str] | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Keep the processes running until `stop` is set, then end them all within the bound.

        A cancellation kills them.

        Raises:
            ChildrenFail: a child says that its command line is wrong; the others have been stopped.
            OSError: the command cannot be started.
        """
        halt = asyncio.Event()
        slots = [asyncio.create_task(self._keep_one(number, halt)) for number in range(1, self.count + 1)]
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([stopping, *slots], return_when=asyncio.FIRST_COMPLETED)
            halt.set()
            await asyncio.wait(slots)
        finally:
            stopping.cancel()
            for slot in slots:
                slot.cancel()
            await asyncio.gather(*slots, return_exceptions=True)
        for slot in slots:
            slot.result()

    async def _keep_one(self, number: int, halt: asyncio.Event) -> None:
        pause = _FIRST_PAUSE
        while not halt.is_set():
            started = time.monotonic()
            code = await self._live_once(number, halt)
            if halt.is_set():
                return
            if code == WRONG_USE:
                raise ChildrenFail(f"Worker process {number} ended with exit code {code}: see its message.")
            if time.monotonic() - started > _LONG_LIFE:
                pause = _FIRST_PAUSE
            _logger.error("Worker process %d %s; it is replaced in %g s.", number, _death(code), pause)
            await _set_within(halt, pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _live_once(self, number: int, halt: asyncio.Event) -> int:
        """One life of a child; its exit code."""
        environment = dict(os.environ if self.environment is None else self.environment)
        environment[SUPERVISOR_VARIABLE] = str(os.getpid())
        # A process group of its own: Ctrl-C reaches the supervisor alone, which passes it on once.
        child = await asyncio.create_subprocess_exec(*self.command, env=environment, process_group=0)
        _logger.info("Worker process %d runs as pid %d.", number, child.pid)
        ending = asyncio.create_task(child.wait())
        halting = asyncio.create_task(halt.wait())
        try:
            await asyncio.wait([ending, halting], return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                child.send_signal(SIGTERM)
                await asyncio.wait([ending], timeout=self.stop_seconds)
            if not ending.done():
                _logger.error(
                    "Worker process %d did not end within %g s; it is killed.", number, self.stop_seconds
                )
        finally:
            halting.cancel()
            if child.returncode is None:
                child.send_signal(SIGKILL)
            code = await asyncio.shield(ending)
        return code


async def stop_when_orphaned(stop: asyncio.Event) -> None:
    """Set `stop` when the supervisor that started this process is gone (it was killed, say).

    Returns at once in a process that has no supervisor.
    """
    supervisor = os.environ.get(SUPERVISOR_VARIABLE)
    if supervisor is None or not supervisor.isdecimal():
        return
    while not stop.is_set():
        if os.getppid() != int(supervisor):
            _logger.warning("The supervisor %s is gone; this worker stops.", supervisor)
            stop.set()
            return
        await _set_within(stop, _LOOK_SECONDS)


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _death(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
