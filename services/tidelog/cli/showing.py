"""How times, tags, records and results look, for every command that shows one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tidelog.cli.console import print_json, print_line, print_table

if TYPE_CHECKING:
    from tidelog_events.instants import Instant
    from tidelog_events.record import JobRecord
    from tidelog_events.schedule_record import ScheduleRecord
    from tidelog_events.wire import Tag

_SHOWN: Final = 80


def shown_time(instant: Instant | None) -> str:
    """A time for people; nothing for none."""
    from tidelog_events.instants import format_instant

    return "" if instant is None else format_instant(instant)


def shown_tags(tags: tuple[Tag, ...]) -> str:
    """Tags for people."""
    return " ".join(tag if isinstance(tag, str) else f"{tag[0]}={tag[1]}" for tag in tags)


def cut(text: str) -> str:
    """A text for a cell, cut when it is long."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def print_fields(record: JobRecord | ScheduleRecord, beside: Mapping[str, str] | None = None) -> None:
    """Every field of a record in words, and what stands beside it; what is empty stays visible as empty."""
    import orjson

    from tidelog_events.wire import to_wire

    shown: list[tuple[str, str]] = []
    for name, value in to_wire(record).items():
        if name == "tags":
            text = shown_tags(record.tags)
        elif isinstance(value, str):
            text = value
        else:
            text = "" if value is None else orjson.dumps(value).decode()
        shown.append((name, text))
    print_table(("field", "value"), [*shown, *(beside or {}).items()])


def print_result(result: str, about: dict[str, str | int | None], *, as_json: bool) -> None:
    """What became of a command: the contract's word for it, or an object with that word and its subject."""
    if as_json:
        print_json({"result": result, **about})
    else:
        print_line(result)
