"""Which call waits for which answer: replies are matched by their `command_id` (contract section 5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tidelog.client.errors import ClientClosed
from tidelog_events.identity import CommandId
from tidelog_events.replies import Reply

_logger = logging.getLogger(__name__)


class Expectation:
    """The answers that one call waits for, one for each of its commands."""

    def __init__(self, what: str, waiting: dict[CommandId, Expectation]) -> None:
        self.what = what
        self.missing: dict[CommandId, None] = {}
        """The commands without an answer yet, in the order in which they are sent."""
        self.replies: dict[CommandId, Reply] = {}
        self._waiting = waiting
        self._failure: ClientClosed | None = None
        self._changed = asyncio.Event()

    def expect(self, command_ids: Iterable[CommandId]) -> None:
        """Wait for the answers to these commands, too; call it before they are sent.

        Raises:
            ClientClosed: no answer can come any more.
            ValueError: another call waits for the answer to one of them; then none of them is waited for.
        """
        if self._failure is not None:
            raise self._failure
        new: dict[CommandId, None] = {}
        for command_id in command_ids:
            holder = self._waiting.get(command_id)
            if holder is None and command_id not in self.replies:
                new[command_id] = None
            elif holder is not None and holder is not self:
                raise ValueError(f"command_id {command_id!r} is in use by another call that still waits")
        self.missing |= new
        self._waiting.update(dict.fromkeys(new, self))

    async def progress(self, *, timeout: float) -> bool:
        """Wait until something was answered since the last call (True) or `timeout` seconds have passed.

        Raises:
            ClientClosed: no answer can come any more.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        if self._failure is not None and self.missing:
            raise self._failure
        return True

    def settle(self, command_id: CommandId, reply: Reply) -> None:
        """Take the answer to one of the commands."""
        del self.missing[command_id]
        self.replies[command_id] = reply
        self._changed.set()

    def fail(self, reason: str) -> None:
        """End the waiting: no answer will come."""
        self._failure = ClientClosed(
            f"{reason} while {self.what} waited for its answer; whether it was decided is unknown."
        )
        self._changed.set()


class PendingReplies:
    """The table of the calls that wait. What nobody waits for any more is let go."""

    def __init__(self) -> None:
        self._waiting: dict[CommandId, Expectation] = {}
        self._calls: set[Expectation] = set()
        self._closed: str | None = None

    def __len__(self) -> int:
        """How many commands wait for an answer."""
        return len(self._waiting)

    @contextmanager
    def expect(self, what: str) -> Iterator[Expectation]:
        """Wait for the answers to the commands of a call, which `Expectation.expect` is told.

        However the block is left, by a cancellation too, nothing of it stays in the table.

        Args:
            what: the call, for messages ("enqueue of billing/42").

        Raises:
            ClientClosed: no answer can come any more.
        """
        if self._closed is not None:
            raise ClientClosed(f"{self._closed}: {what} was not sent.")
        expected = Expectation(what, self._waiting)
        self._calls.add(expected)
        try:
            yield expected
        finally:
            self._calls.remove(expected)
            for command_id in expected.missing:
                self._waiting.pop(command_id, None)

    def settle(self, reply: Reply) -> None:
        """Hand an answer to the call that waits for it; a late one, or the second to a resend, to nobody."""
        expected = None if reply.command_id is None else self._waiting.pop(reply.command_id, None)
        if expected is None or reply.command_id is None:
            _logger.debug("Nobody waits for the answer to command %r.", reply.command_id)
            return
        expected.settle(reply.command_id, reply)

    def close(self, reason: str) -> None:
        """Fail every call that waits, and all that come. The first reason counts."""
        if self._closed is None:
            self._closed = reason
        for expected in self._calls:
            expected.fail(self._closed)
