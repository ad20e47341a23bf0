"""What is asked of schedules: put, remove, trigger (contract section 3, Schedules)."""

from __future__ import annotations

from itertools import count

from tidelog.core.decision import Decision
from tidelog.core.instance import mint
from tidelog.core.tick import settle
from tidelog.core.timetable import trigger_job_id
from tidelog_events.commands import PutSchedule, RemoveSchedule, TriggerSchedule
from tidelog_events.cron import read_cron
from tidelog_events.identity import JobId, ScheduleId, is_key, queue_of
from tidelog_events.parsing import Refusal
from tidelog_events.replies import Result, TriggerReply
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.transitions import SchedulePut, ScheduleRemoved, ScheduleTriggered


def put_schedule(decision: Decision, command: PutSchedule) -> None:
    """Define a schedule from now on, when the ticks of its old definition are settled.

    One that is defined so already is left alone: workers put what they declare at each of their starts.
    """
    present = decision.state.timetable.schedules.get(command.schedule_id)
    if present is not None and present.error is None and _is_defined_so(present, command):
        decision.reply(command, Result.OK)
        return
    cron = read_cron(command.cron, command.time_zone, decision.state.timetable.zones)
    next_due = cron.next_after(decision.now)
    if next_due is None:
        _refuse_silent(decision, command)
        return
    _settle_what_is_due(decision, command.schedule_id)
    decision.emit(
        SchedulePut(
            **decision.event_fields(),
            actor=command.actor,
            schedule_id=command.schedule_id,
            queue=queue_of(command.schedule_id),
            cron=command.cron,
            time_zone=command.time_zone,
            wire_name=command.wire_name,
            payload=command.payload,
            tags=command.tags,
            retry=command.retry_policy,
            catch_up=command.catch_up,
            no_overlap=command.no_overlap,
            next_due=next_due,
        )
    )
    decision.reply(command, Result.OK)


def _is_defined_so(schedule: ScheduleRecord, command: PutSchedule) -> bool:
    return (
        schedule.cron == command.cron
        and schedule.time_zone == command.time_zone
        and schedule.wire_name == command.wire_name
        and schedule.payload == command.payload
        and schedule.tags == command.tags
        and schedule.retry == command.retry_policy
        and schedule.catch_up is command.catch_up
        and schedule.no_overlap is command.no_overlap
    )


def remove_schedule(decision: Decision, command: RemoveSchedule) -> None:
    """Let a schedule tick no more, when the ticks that are due by now are settled; its jobs stay."""
    if command.schedule_id not in decision.state.timetable.schedules:
        decision.reply(command, Result.SCHEDULE_NOT_FOUND)
        return
    _settle_what_is_due(decision, command.schedule_id)
    decision.emit(
        ScheduleRemoved(
            **decision.event_fields(),
            actor=command.actor,
            schedule_id=command.schedule_id,
            queue=queue_of(command.schedule_id),
        )
    )
    decision.reply(command, Result.OK)


def trigger_schedule(decision: Decision, command: TriggerSchedule) -> None:
    """Mint an instance now; the same command again is answered with the instance of the first time."""
    timetable = decision.state.timetable
    schedule = timetable.schedules.get(command.schedule_id)
    if schedule is None:
        decision.reply(command, Result.SCHEDULE_NOT_FOUND)
        return
    known = None
    if command.command_id is not None:
        known = timetable.triggered.get((command.schedule_id, command.command_id))
    job_id = known or _trigger(decision, command, schedule)
    decision.answer(
        command.reply_to,
        TriggerReply(
            command_id=command.command_id,
            type=command.type,
            result=Result.TRIGGERED,
            partition=decision.state.partition,
            sequence=decision.state.last_sequence,
            job_id=job_id,
        ),
    )


def _trigger(decision: Decision, command: TriggerSchedule, schedule: ScheduleRecord) -> JobId:
    job_id = _free_job_id(decision, command)
    decision.emit(
        ScheduleTriggered(
            **decision.event_fields(),
            actor=command.actor,
            schedule_id=schedule.schedule_id,
            queue=schedule.queue,
            job_id=job_id,
        )
    )
    mint(decision, schedule, job_id, decision.now, command.actor)
    return job_id


def _free_job_id(decision: Decision, command: TriggerSchedule) -> JobId:
    """Named by the command, or by the event when it cannot be or somebody has enqueued a job of that name."""
    state = decision.state
    if command.command_id is not None and is_key(command.command_id):
        job_id = trigger_job_id(command.schedule_id, command.command_id)
        if not state.is_taken(job_id):
            return job_id
    job_id = trigger_job_id(command.schedule_id, str(state.sequence))
    for number in count(1):
        if not state.is_taken(job_id):
            break
        job_id = trigger_job_id(command.schedule_id, f"{state.sequence}-{number}")
    return job_id


def _settle_what_is_due(decision: Decision, schedule_id: ScheduleId) -> None:
    """Timers come before commands, but an engine fires only so many at once."""
    schedule = decision.state.timetable.schedules.get(schedule_id)
    if schedule is None or schedule.next_due is None or schedule.next_due > decision.now:
        return
    cause, decision.cause = decision.cause, None
    settle(decision, schedule)
    decision.cause = cause


def _refuse_silent(decision: Decision, command: PutSchedule) -> None:
    """The days of the expression exist, but not its times on them, in that zone."""
    decision.refuse(
        Refusal(
            type=command.type,
            command_id=command.command_id,
            reply_to=command.reply_to,
            field="cron",
            message=f"cron never fires in the time zone {command.time_zone}, not within a hundred years",
        )
    )
