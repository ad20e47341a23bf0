"""What is set aside must always fit: a record that cannot be kept whole is cut, and says how long it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidelog.log.port import MAX_RECORD_BYTES, NewRecord

_KEPT_KEY_BYTES: Final = 1_024
_TRUNCATED_FROM: Final = "truncated-from"


def record_bytes(key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes]] = ()) -> int:
    """What counts against the log's bound for one record."""
    return len(key or b"") + len(value or b"") + sum(len(name) + len(text) for name, text in headers)


def cut_to_fit(record: NewRecord) -> NewRecord:
    """The record, with its key and value cut if its headers push it over the log's bound.

    The header `truncated-from` then says how long the value was.
    """
    topic, partition, key, value, headers = record
    if record_bytes(key, value, headers) <= MAX_RECORD_BYTES:
        return record
    headers = (*headers, (_TRUNCATED_FROM, b"%d" % len(value or b"")))
    key = key and key[:_KEPT_KEY_BYTES]
    value = value and value[: MAX_RECORD_BYTES - record_bytes(key, None, headers)]
    return NewRecord(topic, partition, key, value, headers)
