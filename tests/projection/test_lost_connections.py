"""A Postgres that ends connections while they are used: the work is done again on another one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import pytest
from tests.projection.running import BOUND

from tidelog_projections.errors import ProjectionUnavailable
from tidelog_projections.projection import Projection

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection


async def end_connection(connection: Connection, dsn: str) -> None:
    """Let the server end a connection, and wait until its client has noticed that."""
    noticed = asyncio.Event()
    connection.add_termination_listener(lambda _: noticed.set())
    operator = await asyncpg.connect(dsn)
    try:
        pid = connection.get_server_pid()
        assert await operator.fetchval("SELECT pg_terminate_backend($1)", pid)
    finally:
        await operator.close()
    async with asyncio.timeout(BOUND):
        await noticed.wait()


async def test_work_between_two_statements_is_done_again(projection: Projection, postgres_dsn: str) -> None:
    """The pool takes a lost connection back at once: whatever is asked of it then is refused."""
    tries = 0

    async def work(connection: Connection) -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            await end_connection(connection, postgres_dsn)
        answer: int = await connection.fetchval("SELECT 42")
        return answer

    assert await projection.postgres.run(work) == 42
    assert tries == 2


async def test_work_that_cannot_be_done_twice_is_told_to_start_again(
    projection: Projection, postgres_dsn: str
) -> None:
    async def work() -> None:
        async with projection.postgres.session() as connection:
            await end_connection(connection, postgres_dsn)
            await connection.fetchval("SELECT 42")

    with pytest.raises(ProjectionUnavailable):
        await work()
