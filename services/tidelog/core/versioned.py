"""Entries of the changelog carry the version of their form; one that is not known is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidelog_events.errors import TidelogError
from tidelog_events.jsontext import Json, NotJson, loads

VERSION: Final = 1


class UnreadableState(TidelogError):
    """An entry of the changelog is not what this release writes."""


def versioned(raw: bytes, what: str, known: Sequence[int] = (VERSION,)) -> dict[str, Json]:
    """The object in an entry.

    Raises:
        UnreadableState: not JSON, no object, or of a version that is not among the known ones.
    """
    try:
        written = loads(raw)
    except NotJson as error:
        raise UnreadableState(f"the state topic holds {what} that is not JSON: {error}") from None
    if not isinstance(written, dict) or written.get("version") not in known:
        found = written.get("version") if isinstance(written, dict) else None
        raise UnreadableState(
            f"the state topic holds {what} in version {found!r}; this release reads version "
            f"{' and '.join(map(str, known))}. Run the release that wrote it, or a later one"
        )
    return written
