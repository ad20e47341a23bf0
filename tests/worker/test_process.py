"""A worker as a process over the embedded log: SIGTERM, threads that cannot be stopped, SIGKILL."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.worker.house import BOUND, House, built

from tidelog.log.port import Log
from tidelog.log.sqlite import SqliteLog
from tidelog_events.transitions import Succeeded

ROOT = Path(__file__).parents[2]


class Child:
    """A worker process, and what it says."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def says(self, line: str) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(BOUND):
            heard = (await self.process.stdout.readline()).decode().strip()
        assert heard == line

    async def ends(self) -> int:
        async with asyncio.timeout(BOUND):
            return await self.process.wait()


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
async def house(path: Path) -> AsyncIterator[House]:
    async def open_log() -> Log:
        return await SqliteLog.open(str(path))

    async with built(open_log) as house:
        yield house


@asynccontextmanager
async def worker(path: Path, *, grace_seconds: float) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.worker.child", str(path), str(grace_seconds), cwd=ROOT, stdout=PIPE
    )
    try:
        yield Child(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_sigterm_lets_a_running_job_finish(house: House, path: Path) -> None:
    async with worker(path, grace_seconds=BOUND) as child:
        job_id = await house.enqueue("finishes", "f")
        await child.says("running default/f")
        child.process.terminate()
        await child.says("ended")
        assert await child.ends() == 0
    assert await house.until_ends(job_id) == ["succeeded"]
    last = house.history.of(job_id)[-1]
    assert isinstance(last, Succeeded)
    assert last.output == b'"finished after the signal"'
    assert house.history.types(job_id) == ["enqueued", "leased", "succeeded"]


async def test_a_thread_that_cannot_be_stopped_does_not_keep_the_process(house: House, path: Path) -> None:
    async with worker(path, grace_seconds=0.1) as child:
        job_id = await house.enqueue("stuck", "s")
        await child.says("running default/s")
        child.process.terminate()
        await child.says("ended")
        assert await child.ends() == 0
    await house.until_type(job_id, "returned")


async def test_a_killed_worker_loses_only_its_lease(house: House, path: Path) -> None:
    async with worker(path, grace_seconds=BOUND) as first, worker(path, grace_seconds=BOUND) as second:
        job_id = await house.enqueue("finishes", "f", retry={"delays": [0]})
        readers = [asyncio.create_task(child.says("running default/f")) for child in (first, second)]
        await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
        owner, other = (first, second) if readers[0].done() else (second, first)
        owner.process.kill()
        await readers[1 if owner is first else 0]
        other.process.terminate()
        await other.says("ended")
        assert await other.ends() == 0
    assert await house.until_ends(job_id) == ["succeeded"]
    assert house.history.types(job_id) == ["enqueued", "leased", "lease_expired", "leased", "succeeded"]
