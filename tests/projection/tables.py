"""Looking at the tables from outside, with plain SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

_EVERYTHING = {
    "jobs": "SELECT j.*, payload::text AS payload, output::text AS output, retry::text AS retry FROM jobs j",
    "job_transitions": "SELECT * FROM job_transitions",
    "job_tags": "SELECT * FROM job_tags",
    "job_dependencies": "SELECT * FROM job_dependencies",
    "queues": "SELECT * FROM queues",
    "queue_depths": "SELECT * FROM queue_depths",
    "schedules": "SELECT s.*, payload::text AS payload, tags::text AS tags, retry::text AS retry"
    " FROM schedules s",
    "schedule_skips": "SELECT * FROM schedule_skips",
    "audit": "SELECT * FROM audit",
    "jobs_archive": "SELECT a.*, payload::text AS payload, output::text AS output, retry::text AS retry"
    " FROM jobs_archive a",
    "projection_position": "SELECT partition, sequence, next_offset, unread FROM projection_position",
    "projection_rejects": "SELECT partition, log_offset, reason, value FROM projection_rejects",
}

Rows = list[dict[str, Any]]


class Tables:
    """The schema `tidelog` of one database."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self.connection = connection

    @classmethod
    @asynccontextmanager
    async def of(cls, dsn: str) -> AsyncIterator[Tables]:
        """Those of the database with that address, over a connection of its own."""
        connection = await asyncpg.connect(dsn)
        try:
            yield cls(connection)
        finally:
            await connection.close()

    async def rows(self, query: str, *arguments: object) -> Rows:
        """The rows of a query in which the tables need not be qualified."""
        await self.connection.execute("SET search_path TO tidelog")
        return [dict(row) for row in await self.connection.fetch(query, *arguments)]

    async def everything(self) -> dict[str, list[str]]:
        """Every row of every table, in an order that does not depend on how they came in."""
        return {table: sorted(map(repr, await self.rows(query))) for table, query in _EVERYTHING.items()}

    async def counted_depths(self) -> Rows:
        """What `queue_depths` has to say, counted."""
        return await self.rows("SELECT queue, state, count(*) FROM jobs GROUP BY 1, 2 ORDER BY 1, 2")

    async def depths(self) -> Rows:
        """What `queue_depths` says."""
        return await self.rows("SELECT queue, state, count FROM queue_depths ORDER BY 1, 2")
