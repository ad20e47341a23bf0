"""Observers are tested on every log that runs without a service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conformance.cluster import Cluster, MemoryCluster, SqliteCluster
from tests.observer.stage import Stage


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """A log with two partitions of topics, and nobody on it."""
    cluster: Cluster = MemoryCluster() if request.param == "memory" else SqliteCluster(tmp_path)
    yield await Stage.build(cluster)
    await cluster.close()
