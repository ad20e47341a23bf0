"""Topics and groups as the file has them, for people who look after an installation. Nothing is written."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence

from tidelog.log.port import GroupDescription, GroupMember, TopicDescription, TopicPartition
from tidelog.log.sqlite.file import milliseconds

_TOPIC = (
    "SELECT t.name, t.cleanup, t.retention_ms, (SELECT count(*) FROM partitions p WHERE p.topic_id = t.id)"
    " FROM topics t WHERE t.name = ?"
)
_OF_GROUP = "FROM groups g JOIN topics t ON t.id = g.topic_id JOIN {} ON x.group_id = g.id WHERE g.name = ?"
_LIVING = f"SELECT x.member_id {_OF_GROUP.format('members x')} AND x.expires_at > ?"
_SHARES = f"SELECT x.member_id, t.name, x.partition {_OF_GROUP.format('assignments x')}"
_OFFSETS = f"SELECT t.name, x.partition, x.next_offset, x.note {_OF_GROUP.format('group_offsets x')}"


def describe_topics(connection: sqlite3.Connection, names: Sequence[str]) -> dict[str, TopicDescription]:
    """The topics among these that exist."""
    found: dict[str, TopicDescription] = {}
    for asked in names:
        row = connection.execute(_TOPIC, (asked,)).fetchone()
        if row is not None:
            name, cleanup, retention_ms, partitions = row
            retention = None if retention_ms is None else retention_ms / 1000
            found[name] = TopicDescription(name, partitions, cleanup, retention)
    return found


def groups(connection: sqlite3.Connection, prefix: str, now: float) -> list[GroupDescription]:
    """The groups whose names begin so, with those members whose heartbeats have not expired.

    The row of one without members and offsets says nothing: nobody ever committed, or it was forgotten.
    """
    names = connection.execute(
        "SELECT DISTINCT name FROM groups WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name", (prefix,)
    ).fetchall()
    found = [_group(connection, name, milliseconds(now)) for (name,) in names]
    return [group for group in found if group.members or group.committed]


def _group(connection: sqlite3.Connection, name: str, now: int) -> GroupDescription:
    shares: defaultdict[str, set[TopicPartition]] = defaultdict(set)
    for member, topic, partition in connection.execute(_SHARES, (name,)):
        shares[member].add(TopicPartition(topic, partition))
    living = [member for (member,) in connection.execute(f"{_LIVING} ORDER BY 1", (name, now))]
    committed: dict[TopicPartition, int] = {}
    notes: dict[TopicPartition, str] = {}
    for topic, partition, offset, note in connection.execute(_OFFSETS, (name,)):
        committed[TopicPartition(topic, partition)] = offset
        if note is not None:
            notes[TopicPartition(topic, partition)] = note
    members = tuple(GroupMember(member, "", frozenset(shares[member])) for member in living)
    return GroupDescription(name, True, members, committed, notes)
