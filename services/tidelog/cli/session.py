"""What commands work with: the settings, and the connections that they name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tidelog.cli.exits import Unreachable
from tidelog_events.errors import TidelogError

if TYPE_CHECKING:
    from tidelog.client.client import Client
    from tidelog.log.port import Log
    from tidelog.settings import Settings
    from tidelog_projections.projection import Projection

_START: Final = "Start one with `tidelog up` or `tidelog init`"


def read_settings() -> Settings:
    """The settings of the environment and of `tidelog.toml`. Raises `SettingsError`."""
    from tidelog.settings import Settings

    return Settings()


def _is_there(log: str) -> bool:
    """Whether an embedded log exists; the reachability of any other one shows by itself."""
    scheme, _, path = log.partition(":")
    return scheme != "sqlite" or Path(path).exists()


@asynccontextmanager
async def open_log(settings: Settings, *, create: bool = False) -> AsyncIterator[Log]:
    """The log. An embedded one that is not there is made only when asked for.

    Raises:
        Unreachable: there is none.
        LogError: it cannot be opened.
    """
    from tidelog.log.address import open_log as open_address

    if not create and not _is_there(settings.log):
        raise Unreachable(
            f"There is no log at {settings.log} (seen from {Path.cwd()}). {_START}, change to the right "
            "directory, or set TIDELOG_LOG."
        )
    async with await open_address(settings.log, kafka=settings.kafka) as log:
        yield log


@asynccontextmanager
async def open_projection(settings: Settings, *, create: bool = False) -> AsyncIterator[Projection]:
    """The projection in Postgres. An embedded server that is not there is made only when asked for.

    Raises:
        Unreachable: there is none.
        ProjectionError, EmbeddedPostgresError: it cannot be used.
    """
    from tidelog_projections.projection import Projection

    if not create:
        require_postgres(settings)
    async with await Projection.connect(
        settings.postgres, history=settings.history, archive=settings.archive
    ) as projection:
        yield projection


def require_postgres(settings: Settings) -> None:
    """Raise `Unreachable` for an embedded Postgres that was never made; any other one shows by itself."""
    from tidelog_projections.embedded import embedded_folder

    folder = embedded_folder(settings.postgres)
    if folder is not None and not folder.exists():
        raise Unreachable(
            f"There is no Postgres at {settings.postgres} (seen from {Path.cwd()}). {_START}, change to the "
            "right directory, or set TIDELOG_POSTGRES."
        )


@asynccontextmanager
async def open_client(settings: Settings, *, reads: bool = False) -> AsyncIterator[Client]:
    """A client of the engines. What it raises is said to have happened at the log's address.

    Args:
        settings: where the log is, and Postgres.
        reads: whether it may read from Postgres, which it connects to by its first read.
    """
    from tidelog.client.client import Client
    from tidelog.client.errors import CommandRefused

    async def connect() -> Projection:
        from tidelog_projections.projection import Projection

        require_postgres(settings)
        return await Projection.connect(settings.postgres)

    async with open_log(settings) as log:
        try:
            async with Client.open(log, settings.topics, projection=connect if reads else None) as client:
                yield client
        except CommandRefused:
            raise
        except TidelogError as error:
            error.add_note(f"The log is {log.address}.")
            raise
