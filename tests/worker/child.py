"""A worker in a process of its own: `python -m tests.worker.child LOG_FILE GRACE_SECONDS`.

It says what it does on its standard output, one line each, and ends at SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading

from tests.worker.house import TOPICS

from tidelog.handler.context import JobContext
from tidelog.handler.jobs import declare
from tidelog.log.port import Log
from tidelog.log.sqlite import SqliteLog
from tidelog.worker.registry import JobRegistry
from tidelog.worker.settings import WorkerSettings
from tidelog.worker.worker import Worker

registry = JobRegistry()
told_to_stop = asyncio.Event()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@declare("finishes", register=registry.add)
async def finishes(ctx: JobContext) -> str:
    """Goes on until after the signal, then finishes by itself."""
    say(f"running {ctx.job_id}")
    await told_to_stop.wait()
    return "finished after the signal"


@declare("stuck", register=registry.add)
def stuck(ctx: JobContext) -> None:
    """A thread that nothing can stop."""
    say(f"running {ctx.job_id}")
    threading.Event().wait()


async def main(path: str, grace_seconds: float) -> None:
    async def open_log() -> Log:
        return await SqliteLog.open(path)

    worker = Worker(
        registry=registry,
        open_log=open_log,
        topics=TOPICS,
        settings=WorkerSettings(queues=("default",), lease_seconds=2.0, grace_seconds=grace_seconds),
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_stop.set)
    await worker.run(told_to_stop)
    say("ended")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
