"""Making the schema, and bringing an older one up to date.

The files of `schema/` are run in the order of their numbers, each once; the highest number is the version.
The schema is derived, so a change that cannot be made in place is a `tidelog rebuild`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from tidelog_projections.connection import SCHEMA
from tidelog_projections.errors import ProjectionRefused, SchemaTooNew

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection

MIGRATION_LOCK: Final = 0x71DE_0001
"""Advisory lock: held while the schema is made or changed, so that of two processes one waits."""
MIN_SERVER_MAJOR: Final = 14


def _steps() -> dict[int, str]:
    folder = files("tidelog_projections") / "schema"
    scripts = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name)
    return {int(file.name.partition("_")[0]): file.read_text(encoding="utf-8") for file in scripts}


SCHEMA_VERSION: Final = max(_steps())


async def ensure_schema(connection: Connection, schema: str = SCHEMA) -> None:
    """Make the schema, or bring it up to date. A current one is only looked at, which any reader may do.

    Raises:
        SchemaTooNew: a later release made it.
        ProjectionRefused: the server is older than Postgres 14, or its encoding is not UTF-8.
    """
    _check_server(connection)
    if await _version(connection, schema) == SCHEMA_VERSION:
        return
    # Not within the transaction: one that began before the wait may still believe that there is no schema.
    await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
    try:
        async with connection.transaction():
            # Somebody else may have done it while this process waited for the lock.
            await migrate(connection, schema, await _version(connection, schema))
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", MIGRATION_LOCK)


async def find_version(connection: Connection, schema: str = SCHEMA) -> int:
    """The version of the schema that is there, 0 when there is none. Nothing is made. Raises as above."""
    _check_server(connection)
    return await _version(connection, schema)


async def migrate(connection: Connection, schema: str, version: int) -> None:
    """Run the steps after `version` in the transaction of the caller, who holds the lock."""
    await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    await connection.execute("SELECT set_config('search_path', $1, true)", schema)
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_version"
        " (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    for number, script in _steps().items():
        if number > version:
            await connection.execute(script)
            await connection.execute("INSERT INTO schema_version (version) VALUES ($1)", number)


async def _version(connection: Connection, schema: str) -> int:
    table = f'"{schema}".schema_version'
    if await connection.fetchval("SELECT to_regclass($1)", table) is None:
        return 0
    version: int | None = await connection.fetchval(f"SELECT max(version) FROM {table}")  # noqa: S608  our own name
    if version is not None and version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"the schema {schema!r} has version {version}, and this release of Tidelog knows versions up to "
            f"{SCHEMA_VERSION}. Upgrade this process, or drop the schema and run `tidelog rebuild` with it"
        )
    return version or 0


def _check_server(connection: Connection) -> None:
    found = connection.get_server_version()
    if found.major < MIN_SERVER_MAJOR:
        raise ProjectionRefused(
            f"the server is Postgres {found.major}; Tidelog needs {MIN_SERVER_MAJOR} or later. Upgrade it"
        )
    encoding = connection.get_settings().server_encoding
    if encoding.upper().replace("-", "") != "UTF8":
        raise ProjectionRefused(
            f"the database is encoded in {encoding}; Tidelog needs one with ENCODING 'UTF8'"
        )
