"""Looking at jobs, cancelling them and starting them again."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, TypedDict

import typer

from tidelog.cli.console import print_json, print_table, say
from tidelog.cli.freshness import catch_up
from tidelog.cli.job import written_archived
from tidelog.cli.options import ActorOption, JobIdArgument, JsonOption, TimeoutOption
from tidelog.cli.session import open_client, open_projection, read_settings
from tidelog.cli.showing import cut, print_result, shown_tags, shown_time
from tidelog.cli.values import read_queue, spellings_of_tag

if TYPE_CHECKING:
    from tidelog_events.identity import QueueName
    from tidelog_events.record import JobRecord
    from tidelog_events.states import JobState
    from tidelog_events.wire import Tag
    from tidelog_projections.archive import ArchivePage
    from tidelog_projections.paging import JobPage

_COLUMNS: Final = ("job", "wire name", "state", "attempt", "due", "cause", "tags")


class State(StrEnum):
    """The seven states, for `--state`."""

    SCHEDULED = "Scheduled"
    AWAITING_PARENT = "AwaitingParent"
    LEASED = "Leased"
    SUCCEEDED = "Succeeded"
    CANCELLED = "Cancelled"
    DEAD_LETTERED = "DeadLettered"
    QUARANTINED = "Quarantined"


async def jobs(
    state: Annotated[State | None, typer.Option(help="Only jobs in this state.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only jobs of this queue.")] = None,
    wire_name: Annotated[str | None, typer.Option(help="Only jobs of this wire name.")] = None,
    tag: Annotated[
        str | None, typer.Option(metavar="LABEL|KEY=VALUE", help="Only jobs with this tag.")
    ] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Jobs that were purged, where TIDELOG_ARCHIVE keeps them.")
    ] = False,
    limit: Annotated[int, typer.Option(help="How many at most, 1 to 500.")] = 50,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on where a listing with the same filters ended.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, the latest due first; archived ones, the last purged first."""
    from tidelog_events.states import JobState

    settings = read_settings()
    checked = None if queue is None else read_queue(queue)
    filters: _Filters = {
        "state": None if state is None else JobState(state.value),
        "queue": checked,
        "wire_name": wire_name,
        "any_tag": () if tag is None else spellings_of_tag(tag),
    }
    async with open_projection(settings) as projection:
        await catch_up(settings, projection, checked)
        if archived:
            purged = await projection.archived_jobs(**filters, limit=limit, after=after)
            _print_archived(purged, as_json=as_json)
        else:
            _print_jobs(await projection.jobs(**filters, limit=limit, after=after), as_json=as_json)


async def cancel(
    job_id: JobIdArgument, actor: ActorOption, timeout: TimeoutOption = 10.0, as_json: JsonOption = False
) -> None:
    """Cancel a job that has not ended: at once, or by asking the worker that runs it."""
    async with open_client(read_settings()) as client:
        result = await client.cancel(job_id, actor=actor, timeout=timeout)
    print_result(result.value, {"job_id": job_id}, as_json=as_json)


async def requeue(
    job_id: JobIdArgument, actor: ActorOption, timeout: TimeoutOption = 10.0, as_json: JsonOption = False
) -> None:
    """Start a dead-lettered or quarantined job again, due now."""
    async with open_client(read_settings()) as client:
        await client.requeue(job_id, actor=actor, timeout=timeout)
    print_result("Requeued", {"job_id": job_id}, as_json=as_json)


class _Filters(TypedDict):
    """What both listings can be asked for."""

    state: JobState | None
    queue: QueueName | None
    wire_name: str | None
    any_tag: tuple[Tag, ...]


def _print_jobs(page: JobPage, *, as_json: bool) -> None:
    from tidelog_events.wire import to_wire

    if as_json:
        print_json({"jobs": [to_wire(record) for record in page.jobs], "after": page.after})
        return
    print_table(_COLUMNS, map(_row, page.jobs), right=("attempt",))
    _say_more(page.after)


def _print_archived(page: ArchivePage, *, as_json: bool) -> None:
    if as_json:
        print_json({"jobs": [written_archived(job) for job in page.jobs], "after": page.after})
        return
    rows = [(*_row(job.record), shown_time(job.purged_at)) for job in page.jobs]
    print_table((*_COLUMNS, "purged"), rows, right=("attempt",))
    _say_more(page.after)


def _row(record: JobRecord) -> tuple[str, ...]:
    return (
        record.job_id,
        record.wire_name,
        record.state.value,
        str(record.attempt),
        shown_time(record.due_time),
        cut(record.terminal_cause or ""),
        shown_tags(record.tags),
    )


def _say_more(after: str | None) -> None:
    if after is not None:
        say(f"There are more: repeat the command with --after {after}")
