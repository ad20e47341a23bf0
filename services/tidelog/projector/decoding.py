"""From records of the transitions topic to what the projection takes in."""

from __future__ import annotations

from tidelog.log.port import Record
from tidelog_events.codec import Undecodable, decode_transition
from tidelog_events.identity import Sequence
from tidelog_events.jsontext import NotJson, loads
from tidelog_projections.batch import Happened, LogEntry, Unread


def entry_of(record: Record) -> LogEntry:
    """The event in a record; a record that cannot be read is set aside, one of an unknown type passed over.

    Raises:
        UnknownVersion: the event is of a version that only a later release reads.
    """
    try:
        event = decode_transition(record.value)
    except Undecodable as error:
        return set_aside(record, str(error))
    if event is None:
        return Unread(record.offset, _sequence_in(record))
    if event.partition != record.partition:
        return set_aside(record, f"an event of partition {event.partition} stands in {record.partition}")
    return Happened(record.offset, event)


def set_aside(record: Record, reason: str) -> Unread:
    """The record as one that changes no row and is kept with its bytes."""
    return Unread(record.offset, _sequence_in(record), reason, record.value)


def _sequence_in(record: Record) -> Sequence | None:
    """The sequence that a record carries, if it carries one of this partition."""
    try:
        match loads(record.value or b""):
            case {"sequence": int(sequence), "partition": int(partition)} if partition == record.partition:
                return Sequence(sequence)
    except NotJson:
        pass  # It has no sequence that could be read, which is what None says.
    return None
