"""The changelog of a partition: the newest state of each entity, and the state rebuilt from it.

Keys are job ids, queue names, `?` before the id of a pending job, `>` before the name of an edge, `%` before
the id of a schedule, and `@position`. They cannot meet: queue names, with which job ids begin, have none of
these characters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from tidelog.core.entry import decode_job, encode_job
from tidelog.core.link import EdgeKey
from tidelog.core.pending import (
    EDGE_MARK,
    PENDING_MARK,
    RestoredAdmission,
    decode_admission,
    decode_edge,
    encode_admission,
    encode_edge,
)
from tidelog.core.state import Job, PartitionState, Queue, Retention
from tidelog.core.versioned import VERSION, UnreadableState, versioned
from tidelog_events.cron import BUNDLED, ZoneDatabase
from tidelog_events.identity import JobId, Partition, QueueName, ScheduleId, Sequence
from tidelog_events.instants import NotAnInstant, format_instant, parse_instant
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.wire import Unreadable, WireInstant, from_wire, to_wire

POSITION_KEY: Final = "@position"
SCHEDULE_MARK: Final = "%"
"""Before the id of a schedule in its key."""


@dataclass(slots=True)
class InputPositions:
    """The offsets of the next records to be read, of the inputs of a partition."""

    commands: int
    links: int


class Change(NamedTuple):
    """An entry to be written; without a value it removes its key."""

    key: str
    value: bytes | None


def take_changes(state: PartitionState) -> list[Change]:
    """What has changed since the last call, each entity once, as it is now."""
    changes = [_job_change(state, job_id) for job_id in state.dirty_jobs]
    changes.extend(_queue_change(state, name) for name in state.dirty_queues)
    changes.extend(_admission_change(state, job_id) for job_id in state.dirty_admissions)
    changes.extend(_edge_change(state, key) for key in state.dirty_edges)
    changes.extend(_schedule_change(state, schedule_id) for schedule_id in state.timetable.dirty)
    state.dirty_jobs.clear()
    state.dirty_queues.clear()
    state.dirty_admissions.clear()
    state.dirty_edges.clear()
    state.timetable.dirty.clear()
    return changes


def _schedule_change(state: PartitionState, schedule_id: ScheduleId) -> Change:
    schedule = state.timetable.schedules.get(schedule_id)
    value = None if schedule is None else orjson.dumps({**to_wire(schedule), "version": VERSION})
    return Change(f"{SCHEDULE_MARK}{schedule_id}", value)


def decode_schedule(raw: bytes) -> ScheduleRecord:
    """The schedule of an entry. Raises `UnreadableState`."""
    try:
        return from_wire(ScheduleRecord, versioned(raw, "a schedule"))
    except Unreadable as error:
        raise UnreadableState(f"an entry of the state topic cannot be read: {error}") from None


def _edge_change(state: PartitionState, key: EdgeKey) -> Change:
    edge = state.edges.get(key)
    return Change(f"{EDGE_MARK}{key}", None if edge is None else encode_edge(edge))


def _admission_change(state: PartitionState, job_id: JobId) -> Change:
    pending = state.admissions.get(job_id)
    value = None if pending is None else encode_admission(pending, state.contested.get(job_id))
    return Change(f"{PENDING_MARK}{job_id}", value)


def position_change(state: PartitionState, positions: InputPositions) -> Change:
    """The entry that says how far the partition has come."""
    return Change(
        POSITION_KEY,
        orjson.dumps(
            {
                "version": VERSION,
                "sequence": state.sequence,
                "now": format_instant(state.now),
                "commands": positions.commands,
                "links": positions.links,
                "admissions": state.next_admission,
                "zones": state.timetable.release,
            }
        ),
    )


def _job_change(state: PartitionState, job_id: JobId) -> Change:
    job = state.jobs.get(job_id)
    return Change(job_id, None if job is None else encode_job(job))


def _queue_change(state: PartitionState, name: QueueName) -> Change:
    queue = state.queue(name)
    settings = QueueSettings(
        name=name,
        paused=queue.paused,
        paused_at=queue.paused_at,
        paused_by=queue.paused_by,
        limit=queue.limit,
    )
    value = orjson.dumps({**to_wire(settings), "version": VERSION}) if queue.has_settings else None
    return Change(name, value)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What operators have set on a queue."""

    name: QueueName
    paused: bool
    paused_at: WireInstant | None
    paused_by: str | None
    limit: int | None


def decode_queue(raw: bytes) -> QueueSettings:
    """The settings of a queue. Raises `UnreadableState`."""
    try:
        return from_wire(QueueSettings, versioned(raw, "a queue"))
    except Unreadable as error:
        raise UnreadableState(f"an entry of the state topic cannot be read: {error}") from None


def is_job_key(key: str) -> bool:
    """Whether an entry is a job's."""
    return "/" in key and not key.startswith((PENDING_MARK, EDGE_MARK, SCHEDULE_MARK))


@dataclass(frozen=True, slots=True)
class Restored:
    """A partition as its changelog has it, and where its inputs go on; None before the first batch."""

    state: PartitionState
    positions: InputPositions | None


def restore(
    entries: Iterable[tuple[str, bytes]],
    partition: Partition,
    partitions: int,
    retention: Retention,
    zones: ZoneDatabase = BUNDLED,
) -> Restored:
    """Rebuild the state of a partition from the newest entry of each key.

    With other `zones` than those by which the next ticks were computed, these are computed anew by the first
    timer that fires.

    Raises:
        UnreadableState: an entry is of another version, or is not what was written here.
    """
    state = PartitionState(partition, partitions, retention)
    state.timetable.zones = zones
    positions: InputPositions | None = None
    jobs: list[Job] = []
    pending: list[RestoredAdmission] = []
    for key, value in entries:
        if key == POSITION_KEY:
            positions = _restore_position(state, value)
        elif key.startswith(EDGE_MARK):
            edge = decode_edge(value)
            state.edges[edge.message.edge] = edge
        elif key.startswith(PENDING_MARK):
            pending.append(decode_admission(value))
        elif key.startswith(SCHEDULE_MARK):
            schedule = decode_schedule(value)
            state.timetable.schedules[schedule.schedule_id] = schedule
        elif is_job_key(key):
            jobs.append(decode_job(value))
        else:
            settings = decode_queue(value)
            state.queues[settings.name] = Queue(
                name=settings.name,
                paused=settings.paused,
                paused_at=settings.paused_at,
                paused_by=settings.paused_by,
                limit=settings.limit,
            )
    jobs.sort(key=lambda job: job.enqueue_sequence)
    for job in jobs:
        state.jobs[job.job_id] = job
    for job in jobs:
        state.index(job)
        if not job.state.is_terminal:
            state.hold_parents(job)
        if job.schedule_id is not None:
            state.timetable.note_birth(job, job.schedule_id, job.enqueue_command_id)
    for schedule in state.timetable.schedules.values():
        state.timetable.index(schedule)
    _index_admissions(state, pending)
    _index_edges(state)
    return Restored(state, positions)


def _restore_position(state: PartitionState, raw: bytes) -> InputPositions:
    written = versioned(raw, "a position")
    match written:
        case {
            "sequence": int(sequence),
            "now": str(now),
            "commands": int(commands),
            "links": int(links),
            "admissions": int(admissions),
        }:
            state.next_admission = admissions
            zones = written.get("zones")
            state.timetable.release = zones if isinstance(zones, str) else None
            try:
                state.now = parse_instant(now)
            except NotAnInstant as error:
                raise UnreadableState(f"the position in the state topic has a time that is {error}") from None
            state.sequence = Sequence(sequence)
            return InputPositions(commands, links)
    raise UnreadableState("the position of the partition in the state topic cannot be read")


def _index_admissions(state: PartitionState, restored: list[RestoredAdmission]) -> None:
    restored.sort(key=lambda one: one.admission.number)
    for one in restored:
        state.admissions[one.admission.job_id] = one.admission
        for parent_id in one.admission.held_parents:
            state.jobs[parent_id].open_dependents += 1
    for one in restored:
        for parent_id, answer in one.admission.answers.items():
            if answer is None and parent_id in state.admissions:
                state.admissions[parent_id].waiters[one.admission.job_id] = None
    contested = [
        (one.contested_until, one.admission.job_id) for one in restored if one.contested_until is not None
    ]
    state.contested = {job_id: deadline for deadline, job_id in sorted(contested)}


def _index_edges(state: PartitionState) -> None:
    for key, edge in state.edges.items():
        parent_id = edge.message.parent_id
        if edge.parent_sequence is not None:
            parent = state.life(parent_id, edge.parent_sequence)
            if parent is not None:
                parent.edges[key] = edge
        elif edge.until is not None:
            state.late_edges[key] = edge
        elif parent_id in state.admissions:
            state.admissions[parent_id].edges[key] = edge
