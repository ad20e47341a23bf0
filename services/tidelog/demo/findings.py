"""What Postgres says of the demonstration, in SQL that anybody may run (contract section 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidelog_events.identity import JobId, ScheduleId
from tidelog_events.instants import Instant
from tidelog_events.jsontext import Json, loads
from tidelog_events.states import JobState
from tidelog_projections.projection import Projection

PROGRESS: Final = "SELECT state, sum(count)::bigint AS jobs FROM tidelog.queue_depths GROUP BY state"
STATES: Final = """\
SELECT queue, state, count(*) AS jobs, sum(attempt) AS attempts
FROM tidelog.jobs GROUP BY queue, state, state_ordinal ORDER BY queue, state_ordinal"""
KINDS: Final = """\
SELECT output->>'kind' AS kind, count(*) AS files, sum((output->>'size')::bigint)::bigint AS bytes
FROM tidelog.jobs WHERE wire_name = 'hash-file' AND state = 'Succeeded'
GROUP BY 1 ORDER BY files DESC, kind LIMIT 8"""
SLOWEST: Final = """\
SELECT t.job_id, j.wire_name,
    (SELECT value FROM tidelog.job_tags g WHERE g.job_id = t.job_id AND key = 'path') AS path,
    extract(epoch FROM max(at) FILTER (WHERE t.type = 'succeeded') - max(at) FILTER (WHERE t.type = 'leased'))
        ::float8 * 1000 AS milliseconds
FROM tidelog.job_transitions t JOIN tidelog.jobs j USING (job_id)
WHERE j.state = 'Succeeded' GROUP BY t.job_id, j.wire_name ORDER BY milliseconds DESC LIMIT 5"""
RETRIES: Final = """\
SELECT job_id, count(*) AS retries, max(error) AS last_error
FROM tidelog.job_transitions WHERE type = 'retry_scheduled'
GROUP BY job_id ORDER BY retries DESC, job_id LIMIT 5"""
INSTANCES: Final = "SELECT count(*) FROM tidelog.jobs WHERE schedule_id = $1"
LIFE: Final = """\
SELECT min(at) FILTER (WHERE action = 'put_schedule') AS put_at,
    max(at) FILTER (WHERE action = 'remove_schedule') AS removed_at
FROM tidelog.audit WHERE target = $1"""
JOBS: Final = "SELECT job_id, state, attempt, terminal_cause, output FROM tidelog.jobs"

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A job as Postgres has it."""

    state: JobState
    attempt: int
    terminal_cause: str | None
    output: Json


async def rows(projection: Projection, statement: str) -> list[Row]:
    """The rows of one statement."""
    return [
        tuple(row) for row in await projection.postgres.run(lambda connection: connection.fetch(statement))
    ]


async def progress(projection: Projection) -> dict[JobState, int]:
    """How many jobs are in each state."""
    found = await projection.postgres.run(lambda connection: connection.fetch(PROGRESS))
    return {JobState(row["state"]): row["jobs"] for row in found}


async def count_instances(projection: Projection, schedule_id: ScheduleId) -> int:
    """How many jobs of a schedule there are."""
    found: int = await projection.postgres.run(lambda connection: connection.fetchval(INSTANCES, schedule_id))
    return found


async def life_of(projection: Projection, schedule_id: ScheduleId) -> tuple[Instant, Instant] | None:
    """When a schedule was put and when it was removed; None when one of the two is not seen yet."""
    found = await projection.postgres.run(lambda connection: connection.fetchrow(LIFE, schedule_id))
    if found is None or found["put_at"] is None or found["removed_at"] is None:
        return None
    return found["put_at"], found["removed_at"]


async def all_jobs(projection: Projection) -> dict[JobId, Found]:
    """Every job by its id."""
    found = await projection.postgres.run(lambda connection: connection.fetch(JOBS))
    return {
        JobId(row["job_id"]): Found(
            JobState(row["state"]),
            row["attempt"],
            row["terminal_cause"],
            None if row["output"] is None else loads(row["output"]),
        )
        for row in found
    }
