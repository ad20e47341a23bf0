"""What would be the broker of a log in memory: topics, records, writers' epochs, groups; for any thread."""

from __future__ import annotations

import asyncio
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from tidelog.log.assignment import balance
from tidelog.log.checks import (
    in_use,
    keyless,
    mismatch,
    refuse_malformed,
    refuse_oversized,
    unknown_partition,
    unknown_topic,
)
from tidelog.log.cleaning import COMPACT_AFTER, TOMBSTONE_SECONDS
from tidelog.log.port import (
    MAX_NOTE_BYTES,
    Cleanup,
    Fenced,
    GroupDescription,
    GroupMember,
    NewRecord,
    Record,
    TopicDescription,
    TopicPartition,
    TopicSpec,
)
from tidelog.log.signalled import out_of_range
from tidelog_events.bounds import cut_text

Listener: TypeAlias = tuple[asyncio.AbstractEventLoop, Callable[[], None]]
"""Who wants to hear of something, and the event loop on which to say it."""


def _call(listener: Listener) -> None:
    """Call a listener on its own loop, whatever thread this is."""
    loop, callback = listener
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        callback()
    elif not loop.is_closed():
        loop.call_soon_threadsafe(callback)


class _Entry(NamedTuple):
    """A record, and when it was appended (wall clock, seconds)."""

    offset: int
    record: Record
    appended_at: float


@dataclass(slots=True)
class _Partition:
    """One partition: what it holds, in order of offset, and who wants to hear of more."""

    spec: TopicSpec
    index: int
    entries: list[_Entry] = field(default_factory=list)
    start: int = 0
    end: int = 0
    compacted_to: int = 0
    listeners: list[Listener] = field(default_factory=list)

    def append(self, new: NewRecord, now: float) -> int:
        offset = self.end
        record = Record(self.spec.name, self.index, offset, new.key, new.value, new.headers)
        self.entries.append(_Entry(offset, record, now))
        self.end = offset + 1
        return offset

    def slice(self, offset: int, limit: int) -> list[Record]:
        first = bisect_left(self.entries, offset, key=attrgetter("offset"))
        return [entry.record for entry in self.entries[first : first + limit]]

    def clean(self, now: float) -> None:
        if self.spec.cleanup is Cleanup.COMPACT:
            self._compact(now)
        elif self.spec.retention_seconds is not None:
            self._trim(now - self.spec.retention_seconds)

    def _compact(self, now: float) -> None:
        newest = {entry.record.key: entry.offset for entry in self.entries}
        self.entries = [
            entry
            for entry in self.entries
            if newest[entry.record.key] == entry.offset
            and (entry.record.value is not None or entry.appended_at > now - TOMBSTONE_SECONDS)
        ]
        self.compacted_to = self.end

    def _trim(self, oldest: float) -> None:
        kept = next(
            (i for i, entry in enumerate(self.entries) if entry.appended_at >= oldest), len(self.entries)
        )
        del self.entries[:kept]
        self.start = self.entries[0].offset if self.entries else self.end


@dataclass(slots=True)
class _Group:
    """A consumer group: who is in it (with how to tell them), who serves what, and what was committed."""

    members: dict[str, Listener] = field(default_factory=dict)
    assignment: dict[int, str] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)


def _describe_group(name: str, parts: Sequence[tuple[str, _Group]]) -> GroupDescription:
    """A group, from what it is on each topic."""
    members = [
        GroupMember(
            member,
            "",
            frozenset(TopicPartition(topic, p) for p, owner in state.assignment.items() if owner == member),
        )
        for topic, state in parts
        for member in state.members
    ]
    committed = {
        TopicPartition(topic, partition): offset
        for topic, state in parts
        for partition, offset in state.committed.items()
    }
    notes = {
        TopicPartition(topic, partition): note
        for topic, state in parts
        for partition, note in state.notes.items()
    }
    return GroupDescription(name, True, tuple(members), committed, notes)


class MemoryStore:
    """What several `MemoryLog` connections share: topics, records, writers' epochs, groups.

    Args:
        clock: the wall clock that retention goes by, in seconds; a test may hand in its own.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._topics: dict[str, list[_Partition]] = {}
        self._epochs: dict[str, int] = {}
        self._groups: dict[tuple[str, str], _Group] = {}
        self._members = 0

    def create_topics(self, topics: Sequence[TopicSpec]) -> list[str]:
        refuse_malformed(topics)
        with self._lock:
            for spec in topics:
                existing = self._topics.get(spec.name)
                if existing is not None:
                    present = existing[0].spec
                    if (present.partitions, present.cleanup) != (spec.partitions, spec.cleanup):
                        raise mismatch(spec, present.partitions, present.cleanup.value)
            created = {spec.name: spec for spec in topics if spec.name not in self._topics}
            for spec in created.values():
                self._topics[spec.name] = [_Partition(spec, index) for index in range(spec.partitions)]
            return list(created)

    def partitions(self, topic: str) -> int:
        with self._lock:
            return len(self._partitions(topic))

    def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        with self._lock:
            specs = [self._topics[name][0].spec for name in names if name in self._topics]
        return {
            spec.name: TopicDescription(
                spec.name, spec.partitions, spec.cleanup.value, spec.retention_seconds
            )
            for spec in specs
        }

    def groups(self, prefix: str) -> list[GroupDescription]:
        """The groups whose names begin with `prefix`, by name."""
        with self._lock:
            found: dict[str, list[tuple[str, _Group]]] = {}
            for (name, topic), state in sorted(self._groups.items(), key=lambda item: item[0]):
                if name.startswith(prefix):
                    found.setdefault(name, []).append((topic, state))
            return [_describe_group(name, parts) for name, parts in found.items()]

    def bounds(self, tp: TopicPartition) -> tuple[int, int]:
        """The start and end offsets."""
        with self._lock:
            partition = self._partition(tp.topic, tp.partition)
            return partition.start, partition.end

    def offset_at(self, tp: TopicPartition, at: float) -> int:
        """The offset of the first record that was appended then or later; the end without one."""
        with self._lock:
            partition = self._partition(tp.topic, tp.partition)
            later = (entry.offset for entry in partition.entries if entry.appended_at >= at)
            return next(later, partition.end)

    def open_writer(self, transactional_id: str) -> int:
        """Fence every earlier writer of this id; returns the epoch of the new one."""
        with self._lock:
            epoch = self._epochs.get(transactional_id, 0) + 1
            self._epochs[transactional_id] = epoch
            return epoch

    def append(self, records: Sequence[NewRecord], *, fence: tuple[str, int] | None = None) -> list[int]:
        """Append all or nothing; with a fence (transactional id, epoch) only if that is still the newest."""
        refuse_oversized(records)
        with self._lock:
            if fence is not None and self._epochs.get(fence[0]) != fence[1]:
                raise Fenced(
                    f"A later writer was opened for {fence[0]!r}; nothing was appended."
                    " This one is dead for good."
                )
            targets = [self._partition(record.topic, record.partition) for record in records]
            for record, target in zip(records, targets, strict=True):
                if record.key is None and target.spec.cleanup is Cleanup.COMPACT:
                    raise keyless(record.topic)
            now = self._clock()
            offsets = [target.append(record, now) for record, target in zip(records, targets, strict=True)]
            touched = {id(target): target for target in targets}.values()
            for partition in touched:
                # Not before half of it may be superfluous, so that the work stays in proportion.
                if partition.end - partition.compacted_to >= max(COMPACT_AFTER, len(partition.entries) // 2):
                    partition.clean(now)
            listeners = [listener for partition in touched for listener in partition.listeners]
        for listener in listeners:
            _call(listener)
        return offsets

    def take(self, positions: dict[TopicPartition, int], max_records: int) -> list[Record]:
        """The next records, in the order of `positions`, which are moved past them."""
        taken: list[Record] = []
        moved: dict[TopicPartition, int] = {}
        with self._lock:
            for tp, offset in positions.items():
                partition = self._partition(tp.topic, tp.partition)
                if not partition.start <= offset <= partition.end:
                    raise out_of_range(tp, offset, partition.start, partition.end)
                wanted = max_records - len(taken)
                if not wanted or offset == partition.end:
                    continue
                found = partition.slice(offset, wanted)
                taken += found
                moved[tp] = found[-1].offset + 1 if len(found) == wanted else partition.end
        # All at once, and after the last refusal: a record that was not handed out is not passed either.
        positions.update(moved)
        return taken

    def listen(self, tps: Sequence[TopicPartition], listener: Listener) -> None:
        with self._lock:
            for partition in [self._partition(*tp) for tp in tps]:
                partition.listeners.append(listener)

    def unlisten(self, tps: Sequence[TopicPartition], listener: Listener) -> None:
        with self._lock:
            for tp in tps:
                self._partition(*tp).listeners.remove(listener)

    def join(self, group: str, topic: str, listener: Listener) -> str:
        """Become a member; returns its id."""
        with self._lock:
            self._partitions(topic)
            self._members += 1
            # Dense and padded: the order of the ids is the order of joining, the same in every run.
            member = f"member-{self._members:06}"
            self._groups.setdefault((group, topic), _Group()).members[member] = listener
            listeners = self._rebalance(group, topic)
        for other in listeners:
            _call(other)
        return member

    def forget_group(self, name: str) -> None:
        with self._lock:
            found = [key for key in self._groups if key[0] == name]
            if any(self._groups[key].members for key in found):
                raise in_use(name)
            for key in found:
                del self._groups[key]

    def leave(self, group: str, topic: str, member: str) -> None:
        with self._lock:
            self._groups[group, topic].members.pop(member, None)
            listeners = self._rebalance(group, topic)
        for other in listeners:
            _call(other)

    def assignment(self, group: str, topic: str, member: str) -> frozenset[int]:
        with self._lock:
            shares = self._groups[group, topic].assignment
            return frozenset(partition for partition, owner in shares.items() if owner == member)

    def commit(
        self, group: str, topic: str, member: str, offsets: Mapping[int, int], notes: Mapping[int, str]
    ) -> None:
        with self._lock:
            state = self._groups[group, topic]
            for partition, offset in offsets.items():
                if state.assignment.get(partition) == member:
                    state.committed[partition] = offset
                    state.notes.pop(partition, None)
                    if partition in notes:
                        state.notes[partition] = cut_text(notes[partition], MAX_NOTE_BYTES)

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        with self._lock:
            return self._groups[group, topic].committed.get(partition)

    def clean(self) -> None:
        """Apply retention and compaction now, completely."""
        with self._lock:
            for partitions in self._topics.values():
                for partition in partitions:
                    partition.clean(self._clock())

    def _rebalance(self, group: str, topic: str) -> list[Listener]:
        state = self._groups[group, topic]
        state.assignment = balance(len(self._topics[topic]), state.members, state.assignment)
        return list(state.members.values())

    def _partitions(self, topic: str) -> list[_Partition]:
        partitions = self._topics.get(topic)
        if partitions is None:
            raise unknown_topic(topic)
        return partitions

    def _partition(self, topic: str, index: int) -> _Partition:
        partitions = self._partitions(topic)
        if not 0 <= index < len(partitions):
            raise unknown_partition(topic, index, len(partitions))
        return partitions[index]
