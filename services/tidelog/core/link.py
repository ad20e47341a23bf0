"""What partitions say to each other about a parent and its dependent (architecture: a parent elsewhere).

Every message names its edge: the child, and the number under which the child's partition admitted it. An id
may be born again, a number never. A message that finds its edge gone is late, and ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, TypeAlias

import orjson

from tidelog_events.errors import TidelogError
from tidelog_events.identity import CommandId, JobId, Partition, Sequence, partition_of, queue_of
from tidelog_events.jsontext import NotJson, loads
from tidelog_events.states import JobState
from tidelog_events.wire import OmittedWhenNone, Unreadable, from_wire, to_wire

EdgeKey: TypeAlias = str
"""Partition and admission number of the child, and the parent: unique for ever."""


class UnreadableMessage(TidelogError):
    """A record on the links topic is no message that this release knows."""


@dataclass(slots=True, kw_only=True)
class LinkMessage:
    """Common to all: the edge, and the command that all of it goes back to."""

    TYPE: ClassVar[str]

    child_id: JobId
    child_partition: Partition
    admission: int
    parent_id: JobId
    cause_command_id: Annotated[CommandId | None, OmittedWhenNone()] = None

    @property
    def edge(self) -> EdgeKey:
        """The name of the edge: a child may have several parents in one partition."""
        return f"{self.child_partition}:{self.admission}:{self.parent_id}"


@dataclass(slots=True, kw_only=True)
class LinkParent(LinkMessage):
    """To the parent's partition: do you know it? Then keep it as long as I live, and tell me its end."""

    TYPE = "link_parent"


@dataclass(slots=True, kw_only=True)
class ParentLinked(LinkMessage):
    """To the child's partition: how the parent is; `state` None: there is no such job."""

    TYPE = "parent_linked"

    state: JobState | None
    parent_sequence: Sequence | None


@dataclass(slots=True, kw_only=True)
class ParentEnded(LinkMessage):
    """To the child's partition: the parent has ended."""

    TYPE = "parent_ended"

    state: JobState


@dataclass(slots=True, kw_only=True)
class DependentEnded(LinkMessage):
    """To the parent's partition: the child has ended, or was never born; the parent may go."""

    TYPE = "dependent_ended"


@dataclass(slots=True, kw_only=True)
class DependentLives(LinkMessage):
    """To the parent's partition: the child was requeued; keep the parent again, if it is still that one."""

    TYPE = "dependent_lives"

    parent_sequence: Sequence


LINK_CLASSES: Final[tuple[type[LinkMessage], ...]] = (
    LinkParent,
    ParentLinked,
    ParentEnded,
    DependentEnded,
    DependentLives,
)
_BY_TYPE: Final = {cls.TYPE: cls for cls in LINK_CLASSES}


def target_of(message: LinkMessage, partitions: int) -> Partition:
    """The partition that a message is for."""
    if isinstance(message, ParentLinked | ParentEnded):
        return message.child_partition
    return partition_of(queue_of(message.parent_id), partitions)


def encode_link(message: LinkMessage) -> bytes:
    """A message as the value of a record."""
    return orjson.dumps(to_wire(message))


def decode_link(raw: bytes | None) -> LinkMessage:
    """The message in a record's value. Raises `UnreadableMessage`."""
    try:
        written = loads(raw or b"")
    except NotJson as error:
        raise UnreadableMessage(f"a message between partitions is not JSON: {error}") from None
    kind = written.get("type") if isinstance(written, dict) else None
    cls = _BY_TYPE.get(kind) if isinstance(kind, str) else None
    if cls is None or not isinstance(written, dict):
        raise UnreadableMessage(
            f"a message between partitions has the type {kind!r}, which this release does not know"
        )
    try:
        return from_wire(cls, written)
    except Unreadable as error:
        raise UnreadableMessage(f"a message between partitions cannot be read: {error}") from None
