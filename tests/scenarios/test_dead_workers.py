"""Workers that are killed, again and again: what people who run job systems have met, on real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.running import SECONDS, Installation
from tests.providers.postgres import server_folder

from tidelog import App, JobRecord, JobState, Retry
from tidelog.client.newjob import NewJob
from tidelog.settings import Settings

DEADLY = """\
import os
import signal
import time

from tidelog import App, JobContext

app = App()


@app.job("kill-worker", queue="pool")
def kill_worker(ctx: JobContext) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.job("harmless", queue="pool")
def harmless(ctx: JobContext) -> int:
    return ctx.attempt


@app.job("hold", queue="one")
def hold(ctx: JobContext, folder: str) -> int:
    if ctx.attempt == 1 and not os.path.exists(os.path.join(folder, "pid")):
        with open(os.path.join(folder, "pid.new"), "w") as file:
            file.write(str(os.getpid()))
        os.rename(os.path.join(folder, "pid.new"), os.path.join(folder, "pid"))
        time.sleep(3600)
    return ctx.attempt
"""


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation with the application `deadly`."""
    with server_folder() as folder:
        (folder / "deadly.py").write_text(DEADLY, encoding="utf-8")
        made = Installation.at(folder)
        assert made.run("init").exit_code == 0
        yield made


def records_of(installation: Installation, jobs: list[NewJob]) -> list[JobRecord]:
    """Enqueue jobs and wait until all have ended."""
    app = App(
        Settings(
            log=installation.variables["TIDELOG_LOG"],
            postgres=installation.variables["TIDELOG_POSTGRES"],
        )
    )

    async def run() -> list[JobRecord]:
        async with app.client() as client:
            ids = await client.enqueue_many(jobs)
            return [await client.wait(job_id, timeout=SECONDS) for job_id in ids]

    return asyncio.run(run())


def test_a_job_that_kills_its_worker_each_time_is_dead_lettered_and_the_others_run(
    installation: Installation,
) -> None:
    deadly = NewJob("kill-worker", queue="pool", retry=Retry(max_attempts=3, delays=[0]))
    others = [NewJob("harmless", queue="pool", retry=Retry(max_attempts=10, delays=[0])) for _ in range(10)]
    with (
        installation.start("engine"),
        installation.start("projector"),
        installation.start("worker", "deadly:app", "--processes", "2", "--lease-seconds", "1") as workers,
    ):
        dead, *ended = records_of(installation, [deadly, *others])
        workers.signal(signal.SIGTERM)
        assert workers.end() == 0
    assert (dead.state, dead.attempt) == (JobState.DEAD_LETTERED, 3)
    assert dead.terminal_cause == "Lease expired on attempt 3 (attempt ceiling reached)."
    assert {record.state for record in ended} == {JobState.SUCCEEDED}


def test_a_killed_worker_does_not_keep_the_slot_of_a_limited_queue(installation: Installation) -> None:
    folder = installation.folder / "held"
    folder.mkdir()
    jobs = [NewJob("hold", {"folder": str(folder)}, queue="one") for _ in range(6)]
    with (
        installation.start("engine"),
        installation.start("projector"),
        installation.start("worker", "deadly:app", "--processes", "2", "--lease-seconds", "1") as workers,
    ):
        limited = installation.run("limit", "one", "1")
        assert limited.exit_code == 0, limited.output
        records = _with_a_kill(installation, jobs, folder / "pid")
        workers.signal(signal.SIGTERM)
        assert workers.end() == 0
    assert [record.state for record in records] == [JobState.SUCCEEDED] * 6
    assert sorted(record.attempt for record in records) == [1, 1, 1, 1, 1, 2]


def _with_a_kill(installation: Installation, jobs: list[NewJob], pid_file: Path) -> list[JobRecord]:
    """Enqueue jobs, kill the process that writes its number, and wait until all jobs have ended."""

    async def run() -> list[JobRecord]:
        waiting = asyncio.create_task(asyncio.to_thread(records_of, installation, jobs))
        await asyncio.to_thread(_kill_when_told, pid_file)
        return await waiting

    return asyncio.run(run())


def _kill_when_told(pid_file: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not pid_file.exists():
        assert time.monotonic() < deadline, f"{pid_file} was never written"
        os.sched_yield()
    os.kill(int(pid_file.read_text(encoding="utf-8")), signal.SIGKILL)
