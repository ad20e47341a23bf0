"""Making the schema, refusing a newer one, and what people are told when Postgres is not there."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest
from tests.projection.story import Story, batch_of
from tests.projection.tables import Tables
from tests.providers.postgres import drop_database

from tidelog_events.identity import JobId
from tidelog_projections.connection import address_of
from tidelog_projections.errors import ProjectionRefused, ProjectionUnavailable, SchemaTooNew
from tidelog_projections.migration import SCHEMA_VERSION
from tidelog_projections.projection import Projection

JOB = JobId("default/job")


async def test_several_processes_that_start_at_once_make_one_schema(postgres_dsn: str) -> None:
    projections = await asyncio.gather(*(Projection.connect(postgres_dsn) for _ in range(4)))
    async with Tables.of(postgres_dsn) as tables:
        versions = await tables.rows("SELECT version FROM schema_version ORDER BY version")
    assert [row["version"] for row in versions] == list(range(1, SCHEMA_VERSION + 1))
    await asyncio.gather(*(projection.close() for projection in projections))


async def test_connecting_again_keeps_the_rows(postgres_dsn: str) -> None:
    story = Story()
    story.enqueue()
    async with await Projection.connect(postgres_dsn) as projection:
        await projection.apply(batch_of(story.events))
    async with await Projection.connect(postgres_dsn) as projection:
        assert await projection.job(JOB) is not None


async def test_the_schema_of_a_later_release_is_refused_by_name(postgres_dsn: str) -> None:
    async with await Projection.connect(postgres_dsn), Tables.of(postgres_dsn) as tables:
        await tables.rows("INSERT INTO tidelog.schema_version (version) VALUES (999)")
    with pytest.raises(
        SchemaTooNew, match=rf"'tidelog' has version 999, .* up to {SCHEMA_VERSION}\. Upgrade"
    ):
        await Projection.connect(postgres_dsn)


async def test_a_schema_that_somebody_changed_is_refused_with_what_to_do(
    projection: Projection, tables: Tables
) -> None:
    await tables.rows("DROP TABLE jobs")
    with pytest.raises(ProjectionRefused, match="tidelog rebuild"):
        await projection.job(JOB)


async def test_a_role_that_may_only_read_reads(postgres_dsn: str, projection: Projection) -> None:
    story = Story()
    story.enqueue()
    await projection.apply(batch_of(story.events))
    role = f"reader_{uuid4().hex}"
    parts = urlsplit(postgres_dsn)
    as_reader = parts._replace(netloc=f"{role}:secret@{parts.netloc.rpartition('@')[2]}").geturl()
    async with Tables.of(postgres_dsn) as tables:
        await tables.rows(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
        try:
            with pytest.raises(ProjectionRefused, match="Grant the role its rights") as refused:
                await Projection.connect(as_reader)
            assert "secret" not in str(refused.value)
            await tables.rows(f"GRANT USAGE ON SCHEMA tidelog TO {role}")
            await tables.rows(f"GRANT SELECT ON ALL TABLES IN SCHEMA tidelog TO {role}")
            async with await Projection.connect(as_reader) as reader:
                assert await reader.job(JOB) is not None
                with pytest.raises(ProjectionRefused, match="permission denied"):
                    await reader.apply(batch_of(story.events))
        finally:
            await tables.rows(f"DROP OWNED BY {role}")
            await tables.rows(f"DROP ROLE {role}")


async def test_an_address_where_nobody_answers_is_named_without_its_password() -> None:
    dsn = "postgresql://ann:secret@127.0.0.1:1/jobs?password=secret2&connect_timeout=1"
    with pytest.raises(ProjectionUnavailable) as unavailable:
        await Projection.connect(dsn, patience=0)
    message = str(unavailable.value)
    assert "postgresql://ann@127.0.0.1:1/jobs" in message
    assert "TIDELOG_POSTGRES" in message
    assert "secret" not in message


async def test_a_database_that_does_not_exist_is_told_at_once(postgres_dsn: str) -> None:
    missing = urlsplit(postgres_dsn)._replace(path="/no_such_database").geturl()
    with pytest.raises(ProjectionUnavailable, match="no_such_database"):
        await Projection.connect(missing, patience=60)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://ann:p%40ss@db:5432/jobs", "postgresql://ann@db:5432/jobs"),
        ("postgres://db/jobs?sslmode=require&password=x", "postgres://db/jobs?sslmode=require"),
        ("postgresql://postgres:@/jobs?host=/var/run/pg", "postgresql://postgres@/jobs?host=/var/run/pg"),
        ("host=db password=secret", "(a DSN that is no postgresql:// URL)"),
        ("postgresql://[db", "(a DSN that is no URL)"),
    ],
)
def test_addresses_for_people(dsn: str, shown: str) -> None:
    assert address_of(dsn) == shown


@pytest.mark.parametrize("dsn", ["host=db password=secret", "postgresql://[db", "mysql://ann:secret@db/jobs"])
async def test_what_is_no_address_of_postgres_is_refused(dsn: str) -> None:
    with pytest.raises(ProjectionUnavailable) as unavailable:
        await Projection.connect(dsn, patience=0)
    assert "secret" not in str(unavailable.value)


async def test_lost_connections_are_made_anew(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue()
    await projection.apply(batch_of(story.events))
    killed = await tables.rows(
        "SELECT pg_terminate_backend(pid, 10000) AS dead FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert killed
    assert all(row["dead"] for row in killed)
    assert await projection.job(JOB) is not None


async def test_a_database_that_goes_away_for_good_is_an_error_with_its_address(
    postgres_server: str, postgres_dsn: str
) -> None:
    async with await Projection.connect(postgres_dsn, patience=0) as projection:
        await drop_database(postgres_server, postgres_dsn)
        with pytest.raises((ProjectionRefused, ProjectionUnavailable), match="Postgres at"):
            await projection.positions()
    connection = await asyncpg.connect(postgres_server)
    await connection.execute(f"CREATE DATABASE {urlsplit(postgres_dsn).path[1:]}")  # for the fixture to drop
    await connection.close()
