"""Log and Postgres: that they are there, and of which version."""

from __future__ import annotations

from tidelog.doctor.findings import Finding, Health
from tidelog.log.port import Log, LogDescription
from tidelog.words import plural
from tidelog_projections.inspection import Inspection
from tidelog_projections.migration import SCHEMA_VERSION

LOG = "log"
POSTGRES = "postgres"


async def check_log(log: Log) -> Finding:
    """What the log runs on. Raises `LogUnavailable`."""
    return judge_log(log.address, await log.describe())


def judge_log(address: str, found: LogDescription) -> Finding:
    """What the log runs on, and whether Tidelog does."""
    message = f"{address} answers: {_shown(found)}"
    if found.is_supported:
        return Finding(LOG, Health.OK, message)
    return Finding(LOG, Health.ERROR, message, "Tidelog needs Kafka 3.7 or later: upgrade the brokers.")


def _shown(found: LogDescription) -> str:
    kind = {"kafka": "Kafka", "sqlite": "SQLite"}.get(found.kind, found.kind)
    version = "" if found.version is None else f" {found.version}"
    return f"{kind}{version}" + (f", {plural(found.brokers, 'broker')}" if found.brokers else "")


def judge_postgres(found: Inspection) -> Finding:
    """The server and the schema."""
    server = f"{found.address} answers: PostgreSQL {found.server_version}"
    if found.schema_version == SCHEMA_VERSION:
        return Finding(POSTGRES, Health.OK, f"{server}, schema version {SCHEMA_VERSION}")
    if found.schema_version:
        return Finding(
            POSTGRES,
            Health.WARNING,
            f"{server}; the schema has version {found.schema_version} of {SCHEMA_VERSION}",
            "Run `tidelog init`, or restart the projector with this release: both bring it up to date.",
        )
    return Finding(
        POSTGRES,
        Health.ERROR,
        f"{server}; it has no schema, so nothing can be read there",
        "Run `tidelog init`.",
    )
