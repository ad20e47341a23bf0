"""Looking at jobs, cancelling them and starting them again."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.console import print_json, print_line, print_table, say
from tidelog.cli.exits import Refused
from tidelog.cli.freshness import catch_up
from tidelog.cli.options import ActorOption, JobIdArgument, JsonOption, TimeoutOption
from tidelog.cli.session import open_client, open_projection, read_settings
from tidelog.cli.values import read_queue, read_tag

if TYPE_CHECKING:
    from tidelog_events.instants import Instant
    from tidelog_events.record import JobRecord
    from tidelog_events.schedule_record import ScheduleRecord
    from tidelog_events.wire import Tag


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
    limit: Annotated[int, typer.Option(help="How many at most, 1 to 500.")] = 50,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on where a listing with the same filters ended.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, the latest due first."""
    from tidelog_events.states import JobState
    from tidelog_events.wire import to_wire

    settings = read_settings()
    checked = None if queue is None else read_queue(queue)
    async with open_projection(settings) as projection:
        await catch_up(settings, projection, checked)
        page = await projection.jobs(
            state=None if state is None else JobState(state.value),
            queue=checked,
            wire_name=wire_name,
            tag=None if tag is None else read_tag(tag),
            limit=limit,
            after=after,
        )
    if as_json:
        print_json({"jobs": [to_wire(record) for record in page.jobs], "after": page.after})
        return
    print_table(
        ("job", "wire name", "state", "attempt", "due", "cause", "tags"),
        [
            (
                record.job_id,
                record.wire_name,
                record.state.value,
                str(record.attempt),
                shown_time(record.due_time),
                cut(record.terminal_cause or ""),
                _tags(record.tags),
            )
            for record in page.jobs
        ],
        right=("attempt",),
    )
    if page.after is not None:
        say(f"There are more: repeat the command with --after {page.after}")


async def job(job_id: JobIdArgument, as_json: JsonOption = False) -> None:
    """Show all that is known of a job."""
    from tidelog.client.checking import check_job_id
    from tidelog_events.identity import queue_of
    from tidelog_events.wire import to_wire

    settings = read_settings()
    known = check_job_id(job_id)
    async with open_projection(settings) as projection:
        await catch_up(settings, projection, queue_of(known))
        record = await projection.job(known)
    if record is None:
        raise no_such_job(job_id)
    if as_json:
        print_json(to_wire(record))
    else:
        print_fields(record)


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


def print_result(result: str, about: dict[str, str | int | None], *, as_json: bool) -> None:
    """What became of a command: the contract's word for it, or an object with that word and its subject."""
    if as_json:
        print_json({"result": result, **about})
    else:
        print_line(result)


def no_such_job(job_id: str) -> Refused:
    """What is said of an id that Postgres does not have."""
    return Refused(
        "NotFound",
        f"There is no job {job_id!r}: it was never enqueued, or it ended so long ago that it was purged "
        "(`tidelog history ID --from-log` tells).",
    )


def shown_time(instant: Instant | None) -> str:
    """A time for people; nothing for none."""
    from tidelog_events.instants import format_instant

    return "" if instant is None else format_instant(instant)


def _tags(tags: tuple[Tag, ...]) -> str:
    return " ".join(tag if isinstance(tag, str) else f"{tag[0]}={tag[1]}" for tag in tags)


_SHOWN = 80


def cut(text: str) -> str:
    """A text for a cell, cut when it is long."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def print_fields(record: JobRecord | ScheduleRecord) -> None:
    """Every field of a record in words; what is empty stays visible as empty."""
    import orjson

    from tidelog_events.wire import to_wire

    shown: list[tuple[str, str]] = []
    for name, value in to_wire(record).items():
        if name == "tags":
            text = _tags(record.tags)
        elif isinstance(value, str):
            text = value
        else:
            text = "" if value is None else orjson.dumps(value).decode()
        shown.append((name, text))
    print_table(("field", "value"), shown)
