"""An installation in memory with a running engine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.worker.house import PARTITIONS, TOPICS, History, House, RunningEngine

from tidelog.log.memory import MemoryLog, MemoryStore


@pytest.fixture
async def house() -> AsyncIterator[House]:
    store = MemoryStore()
    async with MemoryLog(store) as log:
        await log.create_topics(TOPICS.specs(PARTITIONS, 2))
        engine = RunningEngine(store)
        history = History(log)
        await history.start()
        yield House(store, log, history)
        await engine.stop()
