"""Consumer groups: heartbeat rows that expire, and an assignment that every process reads from the file.

Whoever sends a heartbeat also puts the living members and the assignment right, in the same transaction: so
all see the same assignment, and nobody leads.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Mapping
from uuid import uuid4

from tidelog.log.assignment import balance
from tidelog.log.checks import in_use
from tidelog.log.port import MAX_NOTE_BYTES, NO_NOTES, LogError, LogUnavailable
from tidelog.log.process_name import process_name
from tidelog.log.signalled import SignalledMember
from tidelog.log.sqlite.file import milliseconds
from tidelog.log.sqlite.session import Session
from tidelog.log.sqlite.topics import Topic
from tidelog_events.bounds import cut_text

logger = logging.getLogger(__name__)

MEMBER_SECONDS = 2.0
"""A member that sent no heartbeat for so long is taken for dead."""

HEARTBEAT_SECONDS = 0.5

_JOIN_SECONDS = 10.0
_LEAVE_SECONDS = 2.0

# A time further ahead than a heartbeat can write was written by a clock that has been set back since.
_DELETE_DEAD = "DELETE FROM members WHERE group_id = ? AND NOT (expires_at > ? AND expires_at <= ?)"


def group_id(connection: sqlite3.Connection, group: str, topic: Topic) -> int:
    """The id of a group, which is created when it is new."""
    connection.execute(
        "INSERT INTO groups (name, topic_id) VALUES (?, ?) ON CONFLICT DO NOTHING", (group, topic.id)
    )
    (found,) = connection.execute(
        "SELECT id FROM groups WHERE name = ? AND topic_id = ?", (group, topic.id)
    ).fetchone()
    return int(found)


def heartbeat(connection: sqlite3.Connection, group: int, partitions: int, member: str, now: float) -> None:
    """Say that a member lives until `MEMBER_SECONDS` from now, and put the assignment right."""
    instant = milliseconds(now)
    expires_at = instant + milliseconds(MEMBER_SECONDS)
    connection.execute(
        "INSERT INTO members (group_id, member_id, expires_at) VALUES (?, ?, ?)"
        " ON CONFLICT (group_id, member_id) DO UPDATE SET expires_at = excluded.expires_at",
        (group, member, expires_at),
    )
    connection.execute(_DELETE_DEAD, (group, instant, expires_at))
    rebalance(connection, group, partitions)


def leave(connection: sqlite3.Connection, group: int, partitions: int, member: str) -> None:
    """Take a member out of its group, and give its share to the others."""
    connection.execute("DELETE FROM members WHERE group_id = ? AND member_id = ?", (group, member))
    rebalance(connection, group, partitions)


def forget_group(connection: sqlite3.Connection, name: str, now: float) -> None:
    """Take away what a group committed. Raises `GroupInUse` while it has members.

    Its row stays, because an id that is free is given again: a member that was taken for dead and wakes up
    would find itself in another group.
    """
    instant = milliseconds(now)
    ids = [group for (group,) in connection.execute("SELECT id FROM groups WHERE name = ?", (name,))]
    for group in ids:
        connection.execute(_DELETE_DEAD, (group, instant, instant + milliseconds(MEMBER_SECONDS)))
        living = "SELECT EXISTS (SELECT 1 FROM members WHERE group_id = ?)"
        if connection.execute(living, (group,)).fetchone() != (0,):
            raise in_use(name)
    for group in ids:
        connection.execute("DELETE FROM assignments WHERE group_id = ?", (group,))
        connection.execute("DELETE FROM group_offsets WHERE group_id = ?", (group,))


def rebalance(connection: sqlite3.Connection, group: int, partitions: int) -> None:
    """Write the assignment that the members of this instant should have, if it is another one."""
    members, current = _members_and_assignment(connection, group)
    wanted = balance(partitions, members, current)
    if wanted == current:
        return
    connection.execute("DELETE FROM assignments WHERE group_id = ?", (group,))
    connection.executemany(
        "INSERT INTO assignments (group_id, partition, member_id) VALUES (?, ?, ?)",
        [(group, partition, member) for partition, member in wanted.items()],
    )
    connection.execute("UPDATE groups SET generation = generation + 1 WHERE id = ?", (group,))


def _members_and_assignment(connection: sqlite3.Connection, group: int) -> tuple[list[str], dict[int, str]]:
    members, assignment = connection.execute(
        "SELECT (SELECT json_group_array(member_id) FROM members WHERE group_id = ?1),"
        " (SELECT json_group_object(partition, member_id) FROM assignments WHERE group_id = ?1)",
        (group,),
    ).fetchone()
    return json.loads(members), {int(key): member for key, member in json.loads(assignment).items()}


class SqliteMember(SignalledMember):
    """A member whose heartbeats come from the writing thread, however busy its event loop is. Use `join`."""

    def __init__(self, session: Session, topic: Topic, group: int, member: str) -> None:
        super().__init__()
        self._session = session
        self._partitions = len(topic.partition_ids)
        self._group = group
        self._id = member
        self._closed = False
        self._heartbeat = session.thread.every(HEARTBEAT_SECONDS, "A heartbeat", self._beat)
        session.watch.add([-group], self._on_change)

    @classmethod
    async def join(cls, session: Session, group: str, topic: str) -> SqliteMember:
        """Become a member; the first heartbeat, and with it a first assignment, is written already."""
        member = f"{process_name()}-{uuid4().hex}"
        known = session.topics[topic]

        def work(connection: sqlite3.Connection) -> int:
            found = group_id(connection, group, known)
            heartbeat(connection, found, len(known.partition_ids), member, session.clock())
            return found

        joined = cls(session, known, await session.thread.run(work, timeout=_JOIN_SECONDS), member)
        joined._on_change()
        return joined

    async def committed(self, partition: int) -> int | None:
        self._refuse_closed()
        row = self._session.snapshot(
            lambda connection: connection.execute(
                "SELECT next_offset FROM group_offsets WHERE group_id = ? AND partition = ?",
                (self._group, partition),
            ).fetchone()
        )
        return None if row is None else int(row[0])

    async def commit(
        self, offsets: Mapping[int, int], *, timeout: float, notes: Mapping[int, str] = NO_NOTES
    ) -> None:
        self._refuse_closed()
        said = {partition: cut_text(note, MAX_NOTE_BYTES) for partition, note in notes.items()}
        rows = [
            (self._group, partition, offset, self._id, said.get(partition))
            for partition, offset in offsets.items()
        ]
        if rows:
            await self._session.thread.run(
                lambda connection: _commit(connection, rows), timeout=timeout, weight=len(rows)
            )

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._session.thread.no_longer(self._heartbeat)
        self._session.watch.remove([-self._group], self._on_change)
        try:
            await self._session.thread.run(
                lambda connection: leave(connection, self._group, self._partitions, self._id),
                timeout=_LEAVE_SECONDS,
            )
        except LogError as error:
            logger.warning(
                "A member of the log %s could not leave its group and will expire: %s",
                self._session.path,
                error,
            )

    def _beat(self, connection: sqlite3.Connection) -> bool:
        # One that has left must not come back by a heartbeat that had begun.
        if not self._closed:
            heartbeat(connection, self._group, self._partitions, self._id, self._session.clock())
        return False

    def _on_change(self) -> None:
        self._signal.set()
        try:
            self._refresh()
        except LogError as error:
            logger.warning(
                "A member of the log %s has to look again for its share: %s", self._session.path, error
            )

    def _share(self) -> frozenset[int]:
        self._refuse_closed()
        _, shares = self._session.snapshot(
            lambda connection: _members_and_assignment(connection, self._group)
        )
        return frozenset(partition for partition, owner in shares.items() if owner == self._id)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise LogUnavailable("This member has left its group; join again.")


def _commit(connection: sqlite3.Connection, rows: list[tuple[int, int, int, str, str | None]]) -> None:
    connection.executemany(
        "INSERT INTO group_offsets (group_id, partition, next_offset, note)"
        " SELECT group_id, partition, ?3, ?5 FROM assignments"
        " WHERE group_id = ?1 AND partition = ?2 AND member_id = ?4"
        " ON CONFLICT (group_id, partition) DO UPDATE SET next_offset = excluded.next_offset,"
        " note = excluded.note",
        rows,
    )
