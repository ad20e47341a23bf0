"""Looking at schedules, triggering and removing them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidelog.cli.console import print_json, print_line, print_table
from tidelog.cli.exits import Refused
from tidelog.cli.freshness import catch_up
from tidelog.cli.options import ActorOption, JsonOption, ScheduleIdArgument, TimeoutOption
from tidelog.cli.session import open_client, open_projection, read_settings
from tidelog.cli.showing import print_fields, print_result, shown_time
from tidelog.cli.values import read_queue

if TYPE_CHECKING:
    from tidelog_events.instants import Instant
    from tidelog_events.schedule_view import ScheduleView

_OVERDUE_SECONDS: Final = 60.0
"""A tick that is later than so is missed; an engine that runs settles it long before."""
_OVERDUE: Final = "overdue: check that `tidelog engine` runs"


async def schedules(
    queue: Annotated[str | None, typer.Option(help="Only schedules of this queue.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List schedules: when each is due next, what it enqueued last and skipped, what is wrong with it."""
    from tidelog_events.wire import to_wire

    settings = read_settings()
    checked = None if queue is None else read_queue(queue)
    async with open_projection(settings) as projection:
        await catch_up(settings, projection, checked)
        found = await projection.schedules(checked)
    if as_json:
        print_json({"schedules": [to_wire(schedule) for schedule in found]})
        return
    print_table(
        (
            "schedule",
            "cron",
            "zone",
            "next due there",
            "next due (UTC)",
            "last job",
            "is",
            "skipped",
            "error",
        ),
        [
            (
                schedule.schedule_id,
                schedule.cron,
                schedule.time_zone,
                _in_its_zone(schedule),
                shown_time(schedule.next_due),
                schedule.last_job_id or "",
                _state(schedule),
                str(schedule.skipped_count),
                _trouble(schedule),
            )
            for schedule in found
        ],
        right=("skipped",),
    )


async def schedule(schedule_id: ScheduleIdArgument, as_json: JsonOption = False) -> None:
    """Show all that is known of a schedule, with the newest 64 ticks that it skipped."""
    from tidelog.client.checking import check_schedule_id
    from tidelog_events.identity import queue_of
    from tidelog_events.wire import to_wire

    settings = read_settings()
    known = check_schedule_id(schedule_id)
    async with open_projection(settings) as projection:
        await catch_up(settings, projection, queue_of(known))
        found = await projection.schedule(known)
        skips = await projection.schedule_skips(known)
    if found is None:
        raise Refused("ScheduleNotFound", f"There is no schedule {known}: it was never put, or was removed.")
    if as_json:
        ticks = [{"tick": shown_time(skip.tick), "at": shown_time(skip.at)} for skip in skips]
        print_json({**to_wire(found), "skips": ticks})
        return
    print_fields(found)
    if skips:
        print_line("")
        print_table(
            ("skipped tick", "decided at"),
            [(shown_time(skip.tick), shown_time(skip.at)) for skip in skips],
        )


async def trigger(
    schedule_id: ScheduleIdArgument,
    actor: ActorOption,
    timeout: TimeoutOption = 10.0,
    as_json: JsonOption = False,
) -> None:
    """Enqueue a job of a schedule now, and print its id. Its ticks are not touched by that."""
    async with open_client(read_settings()) as client:
        job_id = await client.trigger_schedule(schedule_id, actor=actor, timeout=timeout)
    if as_json:
        print_json({"result": "Triggered", "schedule_id": schedule_id, "job_id": job_id})
    else:
        print_line(job_id)


async def unschedule(
    schedule_id: ScheduleIdArgument,
    actor: ActorOption,
    timeout: TimeoutOption = 10.0,
    as_json: JsonOption = False,
) -> None:
    """Remove a schedule. The jobs that it has enqueued stay."""
    async with open_client(read_settings()) as client:
        await client.remove_schedule(schedule_id, actor=actor, timeout=timeout)
    print_result("Ok", {"schedule_id": schedule_id}, as_json=as_json)


def _in_its_zone(schedule: ScheduleView) -> str:
    from tidelog_events.instants import to_datetime
    from tidelog_events.zones import BUNDLED, UnknownZone

    if schedule.next_due is None:
        return ""
    try:
        zone = BUNDLED.zone(schedule.time_zone)
    except UnknownZone:  # the engine knows it, and this host has other zones
        return ""
    return to_datetime(schedule.next_due).astimezone(zone.info).isoformat()


def _state(schedule: ScheduleView) -> str:
    if schedule.last_job_id is None:
        return ""
    return "purged" if schedule.last_job_state is None else schedule.last_job_state.value


def _trouble(schedule: ScheduleView) -> str:
    if schedule.error is not None:
        return schedule.error
    return _OVERDUE if schedule.next_due is not None and _is_overdue(schedule.next_due) else ""


def _is_overdue(next_due: Instant) -> bool:
    from tidelog_events.instants import SECOND

    return time.time() - next_due / SECOND > _OVERDUE_SECONDS
