"""Engines are tested on every log that runs without a service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conformance.cluster import Cluster, MemoryCluster, SqliteCluster
from tests.engine.house import House


@pytest.fixture(params=["memory", "sqlite"])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster: Cluster = MemoryCluster() if request.param == "memory" else SqliteCluster(tmp_path)
    yield cluster
    await cluster.close()


@pytest.fixture
async def house(cluster: Cluster) -> House:
    """An installation with one partition."""
    return await House.build(cluster)


@pytest.fixture
async def wide_house(cluster: Cluster) -> House:
    """An installation with four partitions."""
    return await House.build(cluster, partitions=4)
