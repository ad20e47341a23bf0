"""What several groups of tests need: a database of their own on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.providers.postgres import create_database, drop_database, running_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The DSN of a server on which databases may be made."""
    with running_postgres() as dsn:
        yield dsn


@pytest.fixture
async def postgres_dsn(postgres_server: str) -> AsyncIterator[str]:
    """The DSN of an empty database, dropped after the test."""
    dsn = await create_database(postgres_server)
    yield dsn
    await drop_database(postgres_server, dsn)
