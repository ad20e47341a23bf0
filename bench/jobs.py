"""The jobs that are measured, and the application that a worker is started with: `bench.jobs:app`."""

from __future__ import annotations

import time

from tidelog import App
from tidelog_events.identity import QueueName

QUEUE = QueueName("bench")

app = App()


@app.job("bench-noop", queue=QUEUE)
async def noop() -> None:
    """Nothing: what is measured is all around it."""


@app.job("bench-pickup", queue=QUEUE)
async def pickup(sent_ns: int) -> int:
    """How many nanoseconds have passed since `sent_ns`; all processes of a machine share that clock."""
    return time.monotonic_ns() - sent_ns
