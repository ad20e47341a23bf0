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
async def pickup() -> int:
    """When the handler begins, in nanoseconds of the wall clock, which all processes of a machine share."""
    return time.time_ns()
