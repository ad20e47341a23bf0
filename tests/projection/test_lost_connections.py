"""A Postgres that ends connections while they are used: the work is done again on another one."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import pytest
from tests.projection.log import BOUND

from tidelog_projections.embedded import EmbeddedPostgres
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


async def read_for_ever(projection: Projection) -> None:
    while True:
        await projection.queues()


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


async def test_while_postgres_is_away_it_is_told_in_words_and_not_in_tracebacks(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = await EmbeddedPostgres.start(folder)
    projection = await Projection.connect(server.dsn, patience=0.2)
    assert await projection.queues() == []
    postmaster = int((folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    os.kill(postmaster, signal.SIGINT)  # as an operator ends it: it closes all connections
    with pytest.raises(ProjectionUnavailable, match="Check that it runs") as unavailable:
        await read_for_ever(projection)
    assert str(folder) in str(unavailable.value)
    with pytest.raises(ProjectionUnavailable, match="Check that it runs"):
        await Projection.connect(server.dsn, patience=0.2)
    assert [record.name for record in caplog.records if record.name.startswith("asyncpg")] == []
    await projection.close()
    await server.stop()
