"""Topics and their partitions, by name. Both are fixed once they exist: one look-up is enough."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidelog.log.checks import mismatch, unknown_partition, unknown_topic
from tidelog.log.port import Cleanup, TopicSpec
from tidelog.log.sqlite.file import snapshot


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the file knows it; `partition_ids` by partition."""

    id: int
    name: str
    cleanup: Cleanup
    partition_ids: tuple[int, ...]

    def partition_id(self, partition: int) -> int:
        if not 0 <= partition < len(self.partition_ids):
            raise unknown_partition(self.name, partition, len(self.partition_ids))
        return self.partition_ids[partition]


class Topics:
    """The topics that exist, remembered."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._known: dict[str, Topic] = {}

    def __getitem__(self, name: str) -> Topic:
        topic = self._known.get(name) or self._find(name)
        if topic is None:
            raise unknown_topic(name)
        self._known[name] = topic
        return topic

    def _find(self, name: str) -> Topic | None:
        return snapshot(self._connection, self._path, lambda connection: find(connection, name))


def find(connection: sqlite3.Connection, name: str) -> Topic | None:
    """Look a topic up in the file."""
    row = connection.execute("SELECT id, cleanup FROM topics WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    topic_id, cleanup = row
    (ids,) = connection.execute(
        "SELECT json_group_array(id) FROM (SELECT id FROM partitions WHERE topic_id = ? ORDER BY partition)",
        (topic_id,),
    ).fetchone()
    return Topic(topic_id, name, Cleanup(cleanup), tuple(json.loads(ids)))


def create(connection: sqlite3.Connection, specs: Sequence[TopicSpec]) -> list[str]:
    """Create those that do not exist and return their names; within a transaction of the caller's."""
    created: list[str] = []
    for spec in specs:
        existing = find(connection, spec.name)
        if existing is None:
            _insert(connection, spec)
            created.append(spec.name)
        elif (len(existing.partition_ids), existing.cleanup) != (spec.partitions, spec.cleanup):
            raise mismatch(spec, len(existing.partition_ids), existing.cleanup.value)
    return created


def _insert(connection: sqlite3.Connection, spec: TopicSpec) -> None:
    retention = None if spec.retention_seconds is None else round(spec.retention_seconds * 1000)
    topic_id = connection.execute(
        "INSERT INTO topics (name, cleanup, retention_ms) VALUES (?, ?, ?)",
        (spec.name, spec.cleanup.value, retention),
    ).lastrowid
    connection.executemany(
        "INSERT INTO partitions (topic_id, partition) VALUES (?, ?)",
        [(topic_id, partition) for partition in range(spec.partitions)],
    )
