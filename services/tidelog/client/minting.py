"""Where minted keys and the "now" of a delay come from.

In production from the wall clock and from chance. The testing kit puts a source of its own in their place
while it is open, since jobs are described (`NewJob(..., delay=60)`) where no client is in sight.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from tidelog.clock import wall_clock
from tidelog_events.identity import random_key
from tidelog_events.instants import Instant

_ENTROPY_BYTES: Final = 10


class Source(Protocol):
    """Tells the time and mints keys."""

    def now(self) -> Instant:
        """The time that delays are counted from."""
        ...

    def mint(self) -> str:
        """A key that was never minted before."""
        ...


class _World:
    def now(self) -> Instant:
        return wall_clock()

    def mint(self) -> str:
        return random_key(wall_clock(), os.urandom(_ENTROPY_BYTES))


_sources: list[Source] = [_World()]


def now() -> Instant:
    """The time that delays are counted from."""
    return _sources[-1].now()


def mint() -> str:
    """A new key: a UUIDv7 in hex."""
    return _sources[-1].mint()


def push_source(source: Source) -> None:
    """Let everything in this process be minted by that source, until it is taken away."""
    _sources.append(source)


def remove_source(source: Source) -> None:
    """Take a source away; the newest of those that are left mints on. Nothing happens if it is gone."""
    if source in _sources:
        _sources.remove(source)


@contextmanager
def minted_by(source: Source) -> Iterator[None]:
    """Let everything in this process be minted by that source within the block."""
    push_source(source)
    try:
        yield
    finally:
        remove_source(source)
