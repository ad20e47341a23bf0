"""The changelog of a partition: the newest state of each entity, and the state rebuilt from it.

Keys are job ids, queue names and `@position`; they cannot meet, because a job id has a slash and a queue
name has neither that nor an at sign.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import orjson

from tidelog.core.state import Job, PartitionState, Queue, Retention
from tidelog_events.errors import TidelogError
from tidelog_events.identity import JobId, Partition, QueueName, Sequence
from tidelog_events.instants import NotAnInstant, format_instant, parse_instant
from tidelog_events.jsontext import Json, NotJson, loads
from tidelog_events.states import JobState
from tidelog_events.wire import Unreadable, WireInstant, from_wire, to_wire

VERSION: Final = 1
POSITION_KEY: Final = "@position"
_DERIVED: Final = ("waiting", "open_dependents", "lease_timer")


class UnreadableState(TidelogError):
    """An entry of the changelog is not what this release writes."""


@dataclass(frozen=True, slots=True)
class InputPositions:
    """The offsets of the next records to be read, of the inputs of a partition."""

    commands: int
    links: int


@dataclass(frozen=True, slots=True)
class Change:
    """An entry to be written; without a value it removes its key."""

    key: str
    value: bytes | None


def take_changes(state: PartitionState) -> list[Change]:
    """What has changed since the last call, each entity once, as it is now."""
    changes = [_job_change(state, job_id) for job_id in state.dirty_jobs]
    changes.extend(_queue_change(state, name) for name in state.dirty_queues)
    state.dirty_jobs.clear()
    state.dirty_queues.clear()
    return changes


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
            }
        ),
    )


def _job_change(state: PartitionState, job_id: JobId) -> Change:
    job = state.jobs.get(job_id)
    return Change(job_id, None if job is None else encode_job(job))


def encode_job(job: Job) -> bytes:
    """A job with all that the engine knows of it, less what follows from other entries."""
    written = to_wire(job)
    for name in _DERIVED:
        del written[name]
    written["version"] = VERSION
    return orjson.dumps(written)


def decode_job(raw: bytes) -> Job:
    """The job that `encode_job` wrote. Raises `UnreadableState`."""
    try:
        return from_wire(Job, _versioned(raw, "a job"))
    except Unreadable as error:
        raise UnreadableState(f"an entry of the state topic cannot be read: {error}") from None


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
        return from_wire(QueueSettings, _versioned(raw, "a queue"))
    except Unreadable as error:
        raise UnreadableState(f"an entry of the state topic cannot be read: {error}") from None


def is_job_key(key: str) -> bool:
    """Whether an entry is a job's."""
    return "/" in key


def _versioned(raw: bytes, what: str) -> dict[str, Json]:
    try:
        written = loads(raw)
    except NotJson as error:
        raise UnreadableState(f"the state topic holds {what} that is not JSON: {error}") from None
    if not isinstance(written, dict) or written.get("version") != VERSION:
        found = written.get("version") if isinstance(written, dict) else None
        raise UnreadableState(
            f"the state topic holds {what} in version {found!r}; this release reads version {VERSION}. "
            "Run the release that wrote it, or a later one"
        )
    return written


@dataclass(frozen=True, slots=True)
class Restored:
    """A partition as its changelog has it, and where its inputs go on; None before the first batch."""

    state: PartitionState
    positions: InputPositions | None


def restore(
    entries: Iterable[tuple[str, bytes]], partition: Partition, partitions: int, retention: Retention
) -> Restored:
    """Rebuild the state of a partition from the newest entry of each key.

    Raises:
        UnreadableState: an entry is of another version, or is not what was written here.
    """
    state = PartitionState(partition, partitions, retention)
    positions: InputPositions | None = None
    jobs: list[Job] = []
    for key, value in entries:
        if key == POSITION_KEY:
            positions = _restore_position(state, value)
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
        _index(state, job)
    return Restored(state, positions)


def _restore_position(state: PartitionState, raw: bytes) -> InputPositions:
    written = _versioned(raw, "a position")
    match written:
        case {"sequence": int(sequence), "now": str(now), "commands": int(commands), "links": int(links)}:
            try:
                state.now = parse_instant(now)
            except NotAnInstant as error:
                raise UnreadableState(f"the position in the state topic has a time that is {error}") from None
            state.sequence = Sequence(sequence)
            return InputPositions(commands, links)
    raise UnreadableState("the position of the partition in the state topic cannot be read")


def _index(state: PartitionState, job: Job) -> None:
    match job.state:
        case JobState.SCHEDULED:
            state.put_ready(job)
        case JobState.LEASED:
            state.queue(job.queue).leased += 1
            state.put_lease_timer(job)
        case JobState.AWAITING_PARENT:
            for parent_id in job.open_parents:
                state.jobs[parent_id].waiting[job.job_id] = None
        case _:
            due = state.purge_due(job)
            if due is not None:
                state.put_purge_timer(job, due)
            return
    for parent_id, sequence in job.parents.items():
        parent = state.life(parent_id, sequence)
        if parent is not None:
            parent.open_dependents += 1
