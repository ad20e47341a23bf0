"""A real PostgreSQL for the tests, from the first of: an address given, a container, the embedded server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from tidelog_projections.embedded import EmbeddedPostgres

ADDRESS_VARIABLE = "TIDELOG_TEST_POSTGRES"
"""A DSN of a user who may create databases; each test makes one and drops it."""
_IMAGE = "postgres:16-alpine"
_DOCKER_SECONDS = 10


@contextmanager
def running_postgres() -> Iterator[str]:
    """The DSN of a server that stands while the block lasts."""
    address = os.environ.get(ADDRESS_VARIABLE)
    if address:
        yield address
    elif _has_docker():
        with _container() as dsn:
            yield dsn
    else:
        with server_folder() as folder:
            server = EmbeddedPostgres.start_blocking(folder)
            try:
                yield server.dsn
            finally:
                server.stop_blocking()


@contextmanager
def server_folder() -> Iterator[Path]:
    """A folder for an embedded server.

    Not one of pytest's: for root the server runs under another account, and every run of pytest closes the
    folder of all runs to other accounts.
    """
    with TemporaryDirectory(prefix="tidelog-postgres-") as folder:
        yield Path(folder)


def _has_docker() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "info"], capture_output=True, timeout=_DOCKER_SECONDS, check=False)
    return asked.returncode == 0


@contextmanager
def _container() -> Iterator[str]:
    # Not at the top: without Docker the tests do not need the package.
    from testcontainers.community.postgres import PostgresContainer

    with PostgresContainer(_IMAGE, driver=None) as container:
        yield container.get_connection_url()


def in_database(dsn: str, name: str) -> str:
    """The same server, another database."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(path=f"/{name}"))


async def create_database(server: str) -> str:
    """Make a database of a new name, and return its DSN."""
    name = f"tidelog_test_{uuid4().hex}"
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    finally:
        await connection.close()
    return in_database(server, name)


async def drop_database(server: str, dsn: str) -> None:
    """Drop the database of a DSN, whoever is still connected to it."""
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f"DROP DATABASE {urlsplit(dsn).path[1:]} WITH (FORCE)")
    finally:
        await connection.close()
