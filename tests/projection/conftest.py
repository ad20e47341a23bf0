"""An empty projection for each test, and a connection that looks at its tables as anybody's SQL would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.projection.tables import Tables
from tests.providers.postgres import server_folder

from tidelog_projections.projection import Projection


@pytest.fixture
async def projection(postgres_dsn: str) -> AsyncIterator[Projection]:
    async with await Projection.connect(postgres_dsn) as projection:
        yield projection


@pytest.fixture
async def tables(projection: Projection, postgres_dsn: str) -> AsyncIterator[Tables]:  # noqa: ARG001  makes the schema
    async with Tables.of(postgres_dsn) as tables:
        yield tables


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder for an embedded server of the test's own."""
    with server_folder() as folder:
        yield folder
