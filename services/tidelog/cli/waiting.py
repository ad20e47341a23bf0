"""Roles may be started in any order: each waits for what is not there yet, says so, and goes on by itself."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from tidelog.cli.exits import Unreachable
from tidelog.log.port import LogUnavailable, UnknownTopic
from tidelog.pausing import pause
from tidelog_events.errors import TidelogError
from tidelog_projections.errors import ProjectionUnavailable

if TYPE_CHECKING:
    from tidelog.cli.threads import OpenRole, Role
    from tidelog.log.port import Log
    from tidelog.log.topics import Topics

logger = logging.getLogger("tidelog.cli")

_PAUSE_SECONDS: Final = 0.5
_REPEAT_SECONDS: Final = 30.0
_WAITED_FOR: Final = {
    LogUnavailable: "the log",
    UnknownTopic: "the topics",
    ProjectionUnavailable: "Postgres",
    Unreachable: "the installation",
}
"""What is not there yet, by the error that says so. What is there and wrong is not waited for."""


async def run_when_possible(open_role: OpenRole, stop: asyncio.Event) -> None:
    """Open a role and run it; as long as something is not there, wait for it, until `stop` is set.

    Raises:
        TidelogError: what no waiting would mend.
    """
    announcement = _Announcement()
    while not stop.is_set():
        try:
            async with AsyncExitStack() as stack:
                role = await _open(stack, open_role, stop)
                if role is not None:
                    await role(stop)
                return
        except tuple(_WAITED_FOR) as error:
            announcement.make(error)
        await pause(stop, _PAUSE_SECONDS)


async def require_topics(log: Log, topics: Topics) -> None:
    """Raise `UnknownTopic` unless the log has all topics of an installation."""
    for spec in topics.specs():
        await log.partitions(spec.name)


async def _open(stack: AsyncExitStack, open_role: OpenRole, stop: asyncio.Event) -> Role | None:
    """The opened role, or None as soon as `stop` is set: an attempt may take many seconds."""
    asked = asyncio.ensure_future(stop.wait())
    with _without_the_clients_own_words():
        opening = asyncio.ensure_future(stack.enter_async_context(open_role()))
        try:
            await asyncio.wait([asked, opening], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            if not opening.done():
                opening.cancel()
                await asyncio.wait([opening])
    return None if opening.cancelled() else opening.result()


@contextmanager
def _without_the_clients_own_words() -> Iterator[None]:
    """aiokafka logs each attempt to connect as an error. What it says is in the error that we get."""
    client = logging.getLogger("aiokafka")
    level = client.level
    if client.getEffectiveLevel() > logging.DEBUG:
        client.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        client.setLevel(level)


def _subject_of(error: TidelogError) -> str:
    return next(_WAITED_FOR[kind] for kind in type(error).__mro__ if kind in _WAITED_FOR)


class _Announcement:
    """Says what is waited for: at once when it is something new, and every half minute."""

    def __init__(self) -> None:
        self._subject = ""
        self._said_at = 0.0

    def make(self, error: TidelogError) -> None:
        subject = _subject_of(error)
        now = time.monotonic()
        if subject == self._subject and now - self._said_at < _REPEAT_SECONDS:
            return
        self._subject, self._said_at = subject, now
        logger.warning("waiting for %s, and going on as soon as it is there: %s", subject, error)
