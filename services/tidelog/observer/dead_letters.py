"""What stands on the dead-letter topic: transitions that an observer gave up on, and requests to redrive.

A record's key is the observer's id. Its headers say what it is; both kinds stand in one partition of the
topic, in their order, so that a request can say: all letters up to here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import orjson

from tidelog.handler.failure import FailureText
from tidelog.log.cutting import cut_to_fit
from tidelog.log.port import NewRecord, Record, TopicPartition
from tidelog_events.identity import partition_of
from tidelog_events.instants import Instant, NotAnInstant, format_instant, parse_instant
from tidelog_events.jsontext import NotJson, loads

_KIND: Final = "kind"
_DEAD_LETTER: Final = b"dead-letter"
_REDRIVE: Final = b"redrive"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A transition that an observer gave up on.

    Attributes:
        observer_id: which one.
        value: the transition as it stands in the log, to the byte; the beginning of one that is too large.
        partition, offset: where it stands there.
        sequence: of the transition; None when it cannot be read.
        error, detail: why it was given up on.
        tries: how often it was tried before; 0 when it cannot be read.
        at: when it was given up on.
        redrives: how often it had been redriven then.
    """

    observer_id: str
    value: bytes | None
    partition: int
    offset: int
    sequence: int | None
    error: str
    detail: str
    tries: int
    at: Instant
    redrives: int = 0

    @property
    def identity(self) -> tuple[int, int]:
        """Equal for letters about the same event: one may stand twice when a process died in between."""
        return self.partition, self.offset

    def record(self, home: TopicPartition) -> NewRecord:
        """The record to append; cut if the log could not take it, so that nothing is in the way for ever."""
        headers = {
            _KIND: _DEAD_LETTER,
            "observer": self.observer_id.encode(),
            "error": self.error.encode(errors="backslashreplace"),
            "detail": self.detail.encode(errors="backslashreplace"),
            "partition": b"%d" % self.partition,
            "offset": b"%d" % self.offset,
            "sequence": b"" if self.sequence is None else b"%d" % self.sequence,
            "tries": b"%d" % self.tries,
            "at": format_instant(self.at).encode(),
            "redrives": b"%d" % self.redrives,
        }
        key = self.observer_id.encode()
        return cut_to_fit(NewRecord(home.topic, home.partition, key, self.value, tuple(headers.items())))

    @classmethod
    def read(cls, record: Record) -> Self | None:
        """The letter in a record; None when it holds something else."""
        headers = dict(record.headers)
        if headers.get(_KIND) != _DEAD_LETTER:
            return None
        try:
            return cls(
                observer_id=headers["observer"].decode(),
                value=record.value,
                partition=int(headers["partition"]),
                offset=int(headers["offset"]),
                sequence=int(headers["sequence"]) if headers["sequence"] else None,
                error=headers["error"].decode(),
                detail=headers["detail"].decode(),
                tries=int(headers["tries"]),
                at=parse_instant(headers["at"].decode()),
                redrives=int(headers["redrives"]),
            )
        except (KeyError, ValueError, NotAnInstant):
            return None


@dataclass(frozen=True, slots=True)
class RedriveRequest:
    """Somebody wants the open letters of an observer delivered again.

    Attributes:
        through: the offset of the last letter to redrive. One that is redriven already stays so: the same
            request read twice does nothing.
        actor: who asked.
    """

    observer_id: str
    through: int
    actor: str
    at: Instant

    def record(self, home: TopicPartition) -> NewRecord:
        """The record to append."""
        value = orjson.dumps({"through": self.through, "actor": self.actor, "at": format_instant(self.at)})
        headers = ((_KIND, _REDRIVE), ("observer", self.observer_id.encode()))
        return NewRecord(home.topic, home.partition, self.observer_id.encode(), value, headers)

    @classmethod
    def read(cls, record: Record) -> Self | None:
        """The request in a record; None when it holds something else."""
        headers = dict(record.headers)
        if headers.get(_KIND) != _REDRIVE:
            return None
        try:
            match loads(record.value or b""):
                case {"through": int(through), "actor": str(actor), "at": str(at)}:
                    return cls(headers["observer"].decode(), through, actor, parse_instant(at))
        except (NotJson, KeyError, ValueError):
            return None
        return None


def letter_of(
    observer_id: str,
    record: Record,
    *,
    sequence: int | None,
    failure: FailureText,
    tries: int,
    at: Instant,
    redrives: int = 0,
) -> DeadLetter:
    """The letter about a record of the log."""
    return DeadLetter(
        observer_id=observer_id,
        value=record.value,
        partition=record.partition,
        offset=record.offset,
        sequence=sequence,
        error=failure.error,
        detail=failure.detail,
        tries=tries,
        at=at,
        redrives=redrives,
    )


def home_of(topic: str, observer_id: str, partitions: int) -> TopicPartition:
    """Where the letters of an observer stand."""
    return TopicPartition(topic, partition_of(observer_id, partitions))
