"""Texts as Postgres can hold them: a NUL is shown as U+2400 (contract section 10)."""

from __future__ import annotations

from typing import overload

from tidelog_events.wire import Tag

_NUL_SHOWN = "\u2400"


@overload
def shown(text: str) -> str: ...
@overload
def shown(text: None) -> None: ...
@overload
def shown(text: str | None) -> str | None: ...
def shown(text: str | None) -> str | None:
    """The text with every NUL shown as U+2400; nothing else is changed."""
    if text is None or "\0" not in text:
        return text
    return text.replace("\0", _NUL_SHOWN)


def shown_tags(tags: tuple[Tag, ...]) -> tuple[Tag, ...]:
    """Tags with every NUL shown; two that look alike then are one."""
    return tuple(
        dict.fromkeys(shown(tag) if isinstance(tag, str) else (shown(tag[0]), shown(tag[1])) for tag in tags)
    )
