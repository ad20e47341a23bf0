"""The decisions of a partition: a command, or the timers that are due, against the state.

Pure: no clock, no I/O, no randomness. `now` is an argument. The engine, `tidelog replay` and every test run
this very code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from tidelog.core.admission import parent_ended, parent_linked, stop_waiting
from tidelog.core.claim import claim, end_waits, serve_parked, touch_due_queues
from tidelog.core.control import cancel, pause_queue, requeue, resume_queue, set_concurrency_limit
from tidelog.core.decision import Decision
from tidelog.core.enqueue import Position, enqueue
from tidelog.core.lease import expire_leases, heartbeat
from tidelog.core.link import (
    DependentEnded,
    DependentLives,
    LinkMessage,
    LinkParent,
    ParentEnded,
    ParentLinked,
)
from tidelog.core.linking import dependent_ended, dependent_lives, link_parent, relink_late
from tidelog.core.outcome import report
from tidelog.core.retention import purge_ended
from tidelog.core.schedule import put_schedule, remove_schedule, trigger_schedule
from tidelog.core.state import PartitionState
from tidelog.core.tick import tick_schedules
from tidelog_events.commands import (
    Cancel,
    Claim,
    Command,
    Enqueue,
    Heartbeat,
    LeaseRow,
    PauseQueue,
    PutSchedule,
    RemoveSchedule,
    Report,
    Requeue,
    ResumeQueue,
    SetConcurrencyLimit,
    TriggerSchedule,
)
from tidelog_events.identity import partition_of, queue_of
from tidelog_events.instants import Instant
from tidelog_events.parsing import Refusal

_NO_LIMIT = 1 << 62


def decide(state: PartitionState, command: Command | Refusal, now: Instant, position: Position) -> Decision:
    """Decide a command at an instant and change the state by what was decided.

    Args:
        state: of the partition that `home_partition` names for the command.
        command: checked whole, or the refusal of what was not well formed.
        now: the instant of the decision; an earlier one than the last is taken for the last.
        position: where the command stands in its input.
    """
    decision = _begin(state, now)
    _decide(decision, command, position)
    return _finished(decision)


def receive(
    state: PartitionState, message: LinkMessage, now: Instant, *, until: int | None = None
) -> Decision:
    """Take a message of another partition in.

    Args:
        state: of the partition that it is for.
        message: of another partition.
        now: the instant of the decision.
        until: the offset up to which commands stood in the log when the message came, if they are not all
            handled yet: a job that is not known may be among them.
    """
    decision = _begin(state, now)
    decision.cause = message.cause_command_id
    match message:
        case LinkParent():
            link_parent(decision, message, until)
        case ParentLinked():
            parent_linked(decision, message)
        case ParentEnded():
            parent_ended(decision, message)
        case DependentEnded():
            dependent_ended(decision, message)
        case DependentLives():
            dependent_lives(decision, message)
    return _finished(decision)


def answer_late_links(state: PartitionState, now: Instant, handled: int) -> Decision:
    """Answer the links that waited for commands, which are handled up to that offset by now."""
    decision = _begin(state, now)
    relink_late(decision, handled)
    return _finished(decision)


def _finished(decision: Decision) -> Decision:
    """Decide the commands that were held until now, then serve the claims that wait for what there is."""
    while decision.released:
        released = decision.released
        decision.released = []
        for command in released:
            _decide(decision, command, ())
    if decision.touched:
        serve_parked(decision)
    return decision


def _decide(decision: Decision, command: Command | Refusal, position: Position) -> None:
    decision.cause = command.command_id
    match command:
        case Refusal():
            decision.refuse(command)
        case Enqueue():
            enqueue(decision, command, position)
        case Claim():
            claim(decision, command)
        case Heartbeat():
            heartbeat(decision, command)
        case Report():
            report(decision, command)
        case Cancel():
            cancel(decision, command)
        case Requeue():
            requeue(decision, command)
        case PauseQueue():
            pause_queue(decision, command)
        case ResumeQueue():
            resume_queue(decision, command)
        case SetConcurrencyLimit():
            set_concurrency_limit(decision, command)
        case PutSchedule():
            put_schedule(decision, command)
        case RemoveSchedule():
            remove_schedule(decision, command)
        case TriggerSchedule():
            trigger_schedule(decision, command)
        case _:
            assert_never(command)


def fire_timers(state: PartitionState, now: Instant, limit: int = _NO_LIMIT) -> Decision:
    """Decide what is due by itself at an instant, at most so many of each kind, and serve parked claims."""
    decision = _begin(state, now)
    expire_leases(decision, limit)
    if state.timetable.schedules:
        tick_schedules(decision, limit)
    purge_ended(decision, limit)
    stop_waiting(decision)
    touch_due_queues(decision)
    return _finished(decision)


def end_parked_waits(state: PartitionState, now: Instant) -> Decision:
    """Answer the parked claims whose wait is over; the last thing of an instant."""
    decision = _begin(state, now)
    end_waits(decision)
    return decision


def _begin(state: PartitionState, now: Instant) -> Decision:
    state.now = max(state.now, now)
    return Decision(state, state.now)


def home_partition(command: Command, partitions: int) -> int | Refusal | None:
    """The partition that decides a command (contract section 1).

    None for a command without rows, which any partition may answer; a refusal when its rows live on several.
    """
    match command:
        case Enqueue():
            return partition_of(command.target_queue, partitions)
        case Claim() | PauseQueue() | ResumeQueue() | SetConcurrencyLimit():
            return partition_of(command.queue, partitions)
        case Cancel() | Requeue():
            return partition_of(queue_of(command.job_id), partitions)
        case PutSchedule() | RemoveSchedule() | TriggerSchedule():
            return partition_of(queue_of(command.schedule_id), partitions)
        case Heartbeat():
            return _home_of_rows(command, "leases", command.leases, partitions)
        case Report():
            return _home_of_rows(command, "outcomes", command.outcomes, partitions)
        case _:
            assert_never(command)


def _home_of_rows(
    command: Heartbeat | Report, field: str, rows: Iterable[LeaseRow], partitions: int
) -> int | Refusal | None:
    homes = {partition_of(queue_of(row.job_id), partitions) for row in rows}
    if len(homes) > 1:
        return Refusal(
            type=command.type,
            command_id=command.command_id,
            reply_to=command.reply_to,
            field=field,
            message=f"{field} live on {len(homes)} partitions; send one {command.type} for each partition",
        )
    return next(iter(homes), None)
