"""The way to Postgres: the pool, how values travel, and when a failure is worth another try."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from tidelog_events.instants import Instant
from tidelog_projections.errors import ProjectionRefused, ProjectionUnavailable

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
    Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

SCHEMA: Final = "tidelog"
APPLICATION_NAME: Final = "tidelog"
_CONNECT_SECONDS: Final = 10.0
_STATEMENT_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 5.0
_FIRST_DELAY: Final = 0.05
_LAST_DELAY: Final = 1.0
_POSTGRES_EPOCH: Final = 946_684_800_000_000
"""2000-01-01T00:00:00Z in microseconds since 1970: where the binary form of a timestamptz counts from."""

_TRANSIENT_CLASSES: Final = frozenset({"08", "40", "53", "57"})
"""Classes of SQLSTATE that pass: connection, rollback, lack of resources, an operator's hand."""
_READ_ONLY: Final = "25006"
"""A standby that is not promoted yet."""
_SECRETS: Final = frozenset({"password", "passfile", "sslpassword"})

T = TypeVar("T")


def address_of(dsn: str) -> str:
    """A DSN for people: without its secrets."""
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return "(a DSN that is no URL)"
    if not parts.scheme.startswith("postgres"):
        return "(a DSN that is no postgresql:// URL)"
    user, at, host = parts.netloc.rpartition("@")
    netloc = f"{user.partition(':')[0]}{at}{host}"
    query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] not in _SECRETS], safe="/")
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))


class Postgres:
    """A pool of connections to one database, with bounded patience.

    Args:
        patience: how long, in seconds, a lost connection is tried again before `ProjectionUnavailable`.
    """

    def __init__(self, pool: Pool, address: str, *, patience: float) -> None:
        self._pool = pool
        self.address = address
        self._patience = patience

    @classmethod
    async def connect(cls, dsn: str, *, max_connections: int, patience: float) -> Postgres:
        """Open the pool.

        Raises:
            ProjectionUnavailable: nobody answers there, or whoever does refuses the user or the database.
        """
        address = address_of(dsn)
        deadline = time.monotonic() + patience
        delay = _FIRST_DELAY
        while True:
            try:
                # No least size: the pool would try by itself to keep it up while Postgres is away, and log a
                # traceback for each try. What is not there is told by whoever needs it.
                pool = await asyncpg.create_pool(
                    dsn,
                    min_size=0,
                    max_size=max_connections,
                    init=_prepare,
                    timeout=_CONNECT_SECONDS,
                    command_timeout=_STATEMENT_SECONDS,
                    server_settings={"application_name": APPLICATION_NAME},
                )
                try:
                    async with pool.acquire(timeout=_CONNECT_SECONDS):
                        return cls(pool, address, patience=patience)
                except BaseException:
                    pool.terminate()
                    raise
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as error:
                if not _is_transient(error) or time.monotonic() + delay > deadline:
                    raise _unavailable(address, error) from error
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LAST_DELAY)

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do some work on a connection, again on another one if the first is lost.

        The work must be fit to be done twice: one that is lost in a commit leaves the outcome unknown.

        Raises:
            ProjectionUnavailable: Postgres did not come back within the patience.
            ProjectionRefused: Postgres answered with an error that another try would meet again.
        """
        deadline = time.monotonic() + self._patience
        delay = _FIRST_DELAY
        while True:
            try:
                async with self._lent() as connection:
                    return await work(connection)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                if not _is_transient(error):
                    raise self._refused(error) from error
                if time.monotonic() + delay > deadline:
                    raise _unavailable(self.address, error) from error
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LAST_DELAY)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """One connection for work that cannot be done twice; its errors as in `run`, without another try."""
        try:
            async with self._lent() as connection:
                yield connection
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise (
                _unavailable(self.address, error) if _is_transient(error) else self._refused(error)
            ) from error

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Connection]:
        """A connection of the pool. That it was lost is an `OSError`, however asyncpg says so."""
        try:
            async with self._pool.acquire(timeout=_CONNECT_SECONDS) as connection:
                try:
                    yield connection
                except asyncpg.InterfaceError as error:
                    if _is_lost(connection):
                        raise ConnectionResetError(f"the connection is gone: {error}") from error
                    raise
        except asyncpg.InternalClientError as error:
            # What it says when the connection ends in the moment in which the pool takes it back.
            raise ConnectionResetError(f"the connection ended under way: {error}") from error

    def _refused(self, error: Exception) -> ProjectionRefused:
        hint = ""
        if isinstance(error, asyncpg.UndefinedTableError | asyncpg.UndefinedColumnError):
            hint = ". The schema is not what this release made: run `tidelog rebuild`"
        elif isinstance(error, asyncpg.InsufficientPrivilegeError):
            hint = (
                f". Grant the role its rights on the schema {SCHEMA!r}, or run `tidelog init` as the owner of"
                " the database"
            )
        return ProjectionRefused(f"Postgres at {self.address} refused: {error}{hint}")

    async def close(self) -> None:
        """Close the connections, within a few seconds, by force if need be."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()


def _is_lost(connection: Connection) -> bool:
    """Whether a connection was lost: the pool takes it back at once, and this question is refused then."""
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:
        return True


def _is_transient(error: Exception) -> bool:
    if isinstance(error, asyncpg.PostgresError):
        sqlstate: str = error.sqlstate or ""
        return sqlstate[:2] in _TRANSIENT_CLASSES or sqlstate == _READ_ONLY
    return isinstance(error, OSError)


def _unavailable(address: str, error: Exception) -> ProjectionUnavailable:
    reason = str(error) or type(error).__name__
    return ProjectionUnavailable(
        f"Postgres at {address} is not available ({reason}). Check that it runs, and that TIDELOG_POSTGRES "
        "names the right host, database, user and password"
    )


async def _prepare(connection: Connection) -> None:
    """Instants travel as whole microseconds and JSON as its very bytes; nothing is rounded or parsed."""
    await connection.set_type_codec(
        "timestamptz",
        schema="pg_catalog",
        encoder=lambda instant: (instant - _POSTGRES_EPOCH,),
        decoder=lambda fields: Instant(fields[0] + _POSTGRES_EPOCH),
        format="tuple",
    )
    await connection.set_type_codec(
        "json", schema="pg_catalog", encoder=lambda text: text, decoder=bytes, format="binary"
    )
