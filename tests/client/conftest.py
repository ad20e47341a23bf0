"""A log with topics, an engine that decides, and a client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.client.core_engine import (
    PARTITIONS,
    REPLY_PARTITIONS,
    TOPICS,
    CoreEngine,
    ProbedLog,
    running_engine,
)

from tidelog.client.client import Client


@pytest.fixture
async def log() -> AsyncIterator[ProbedLog]:
    """A log under observation, without an engine."""
    async with ProbedLog() as log:
        await log.create_topics(TOPICS.specs(PARTITIONS, REPLY_PARTITIONS))
        yield log


@pytest.fixture
async def engine(log: ProbedLog) -> AsyncIterator[CoreEngine]:
    """An engine over the log."""
    async with running_engine(log.store) as engine:
        yield engine


@pytest.fixture
async def client(log: ProbedLog) -> AsyncIterator[Client]:
    """A client over the log; ask for `engine` too where its calls are to be answered."""
    async with Client.open(log, TOPICS) as client:
        yield client
