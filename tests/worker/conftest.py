"""An installation in memory with a running engine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.worker.house import House, built

from tidelog.log.memory import MemoryLog, MemoryStore
from tidelog.log.port import Log


@pytest.fixture
async def house() -> AsyncIterator[House]:
    store = MemoryStore()

    async def open_log() -> Log:
        return MemoryLog(store)

    async with built(open_log) as house:
        yield house
