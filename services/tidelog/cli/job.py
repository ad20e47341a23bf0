"""`tidelog job`: all that is known of one job, also when only the archive has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.cli.console import print_json, say
from tidelog.cli.exits import Refused
from tidelog.cli.freshness import catch_up
from tidelog.cli.options import JobIdArgument, JsonOption
from tidelog.cli.session import open_projection, read_settings
from tidelog.cli.showing import print_fields, shown_time

if TYPE_CHECKING:
    from tidelog_projections.archive import ArchivedJob
    from tidelog_projections.circumstances import Circumstances


async def job(job_id: JobIdArgument, as_json: JsonOption = False) -> None:
    """Show all that is known of a job: its record, its parents, how many jobs wait for it, its last error."""
    from tidelog.client.checking import check_job_id
    from tidelog_events.identity import queue_of

    settings = read_settings()
    known = check_job_id(job_id)
    async with open_projection(settings) as projection:
        await catch_up(settings, projection, queue_of(known))
        found = await projection.circumstances(known)
    if found.job is not None:
        _print_job(found, as_json=as_json)
    elif found.archived is not None:
        _print_archived(found.archived, as_json=as_json)
    else:
        raise no_such_job(job_id)


def no_such_job(job_id: str) -> Refused:
    """What is said of an id that Postgres does not have."""
    return Refused(
        "NotFound",
        f"There is no job {job_id!r}: it was never enqueued, or it ended so long ago that it was purged "
        "(`tidelog history ID --from-log` tells).",
    )


def written_archived(job: ArchivedJob) -> dict[str, object]:
    """A JobRecord of the archive as JSON, with what stands beside it there."""
    from tidelog_events.wire import to_wire

    return {**to_wire(job.record), "parents": list(job.parents), "purged_at": shown_time(job.purged_at)}


def _print_job(found: Circumstances, *, as_json: bool) -> None:
    from tidelog_events.wire import to_wire

    record, error = found.job, found.last_error
    if record is None:
        raise ValueError("there is no job to print")
    if as_json:
        written: dict[str, object] = to_wire(record)
        written["parents"] = [
            {"job_id": parent.job_id, "state": None if parent.state is None else parent.state.value}
            for parent in found.parents
        ]
        written["children"] = found.children
        written["last_error"] = (
            None
            if error is None
            else {"attempt": error.attempt, "at": shown_time(error.at), "error": error.error}
        )
        written["purged_at"] = None
        print_json(written)
        return
    parents = (f"{parent.job_id} ({parent.state or 'not known'})" for parent in found.parents)
    print_fields(
        record,
        {
            "parents": " ".join(parents),
            "children": str(found.children),
            "last_error": ""
            if error is None
            else f"attempt {error.attempt} at {shown_time(error.at)}: {error.error}",
        },
    )


def _print_archived(job: ArchivedJob, *, as_json: bool) -> None:
    purged_at = shown_time(job.purged_at)
    say(f"tidelog: {job.record.job_id} was purged at {purged_at}; this is what the archive has.")
    if as_json:
        print_json(written_archived(job))
    else:
        print_fields(job.record, {"parents": " ".join(job.parents), "purged_at": purged_at})
