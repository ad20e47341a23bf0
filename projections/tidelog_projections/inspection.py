"""A look at Postgres that makes and changes nothing, for those who look after an installation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidelog_events.identity import Partition
from tidelog_events.instants import SECOND
from tidelog_projections import queries
from tidelog_projections.batch import Position
from tidelog_projections.connection import Postgres
from tidelog_projections.embedded import EmbeddedPostgres, embedded_folder
from tidelog_projections.migration import find_version
from tidelog_projections.queue_loads import QueueLoad, queue_loads

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection

_SERVER_VERSION: Final = "SELECT split_part(current_setting('server_version'), ' ', 1)"
"""Without what packagers add, as in `16.2 (Debian …)`."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was seen.

    Attributes:
        address: where, without the password.
        server_version: such as `16.2`.
        schema_version: 0 when there is no schema; then there is nothing of all that follows but the clock.
        clock_ahead: seconds by which the server's clock is ahead of this host's; behind when negative.
        clock_within: seconds that this may be wrong by: half the time that asking took.
        positions: how far each partition has come.
        rejects: records of the log that could not be taken in.
        newest_reject: why the newest of them could not.
        queues: those in which something is due, or has ended badly.
    """

    address: str
    server_version: str
    schema_version: int
    clock_ahead: float
    clock_within: float
    positions: dict[Partition, Position]
    rejects: int
    newest_reject: str | None
    queues: tuple[QueueLoad, ...] = ()


async def inspect(address: str, *, patience: float) -> Inspection:
    """Look at the server and the schema.

    Args:
        address: a `postgresql://` DSN, or `embedded:FOLDER`; its server is started if it does not run.
        patience: seconds for which a connection is tried again.

    Raises:
        ProjectionUnavailable, EmbeddedPostgresError: nobody answers there.
        ProjectionRefused: the server is too old, or the role may not read.
        SchemaTooNew: a later release made the schema.
    """
    folder = embedded_folder(address)
    server = None if folder is None else await EmbeddedPostgres.start(folder)
    try:
        dsn = address if server is None else server.dsn
        postgres = await Postgres.connect(dsn, max_connections=1, patience=patience)
        try:
            return await postgres.run(lambda connection: _look(connection, postgres.address))
        finally:
            await postgres.close()
    finally:
        if server is not None:
            await server.stop()


async def _look(connection: Connection, address: str) -> Inspection:
    schema_version = await find_version(connection)
    asked_at, began = time.time(), time.monotonic()
    there = await connection.fetchval("SELECT clock_timestamp()")
    within = (time.monotonic() - began) / 2
    rejects, newest, positions = 0, None, {}
    loads: tuple[QueueLoad, ...] = ()
    if schema_version:
        rejects = await connection.fetchval("SELECT count(*) FROM tidelog.projection_rejects")
        newest = await connection.fetchval(
            "SELECT reason FROM tidelog.projection_rejects ORDER BY at DESC, log_offset DESC LIMIT 1"
        )
        positions = await queries.positions(connection)
        loads = await queue_loads(connection, there)
    return Inspection(
        address,
        server_version=await connection.fetchval(_SERVER_VERSION),
        schema_version=schema_version,
        clock_ahead=there / SECOND - (asked_at + within),
        clock_within=within,
        positions=positions,
        rejects=rejects,
        newest_reject=newest,
        queues=loads,
    )
