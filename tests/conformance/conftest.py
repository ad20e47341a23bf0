"""The adapters that the conformance suite runs against."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conformance.cluster import Cluster, MemoryCluster, SqliteCluster

from tidelog.log.port import Log


@pytest.fixture(params=["memory", "sqlite"])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster: Cluster = MemoryCluster() if request.param == "memory" else SqliteCluster(tmp_path)
    yield cluster
    await cluster.close()


@pytest.fixture
async def log(cluster: Cluster) -> Log:
    return await cluster.connect()
