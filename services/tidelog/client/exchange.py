"""Sends commands and brings back their answers: batching, matching, one resend, and bounded waits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Final, Protocol

from tidelog.client.inbox import Inbox
from tidelog.client.pending import Expectation, PendingReplies
from tidelog.client.sender import MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Sender
from tidelog.log.port import LogUnavailable, NewRecord, OutcomeUnknown
from tidelog_events import identity
from tidelog_events.identity import CommandId, Partition
from tidelog_events.replies import Reply

_logger = logging.getLogger(__name__)

_READ_TIMEOUT = 5.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_CLOSE_TIMEOUT = 5.0
_FIRST_BATCH_RECORDS: Final = 250
"""The first batch of a call is small, so that engines have something to decide while the next is written."""
_WRITTEN_AT_ONCE: Final = 50
"""Records, in a millisecond or so; then other tasks have their turn: sender, inbox, the caller's own."""


class Commands(Protocol):
    """The commands of one call. Each is written when it is sent: engines decide the first ones meanwhile."""

    @property
    def chosen(self) -> Collection[CommandId]:
        """The ids that another call may use as well, because a caller chose them."""

    def __iter__(self) -> Iterator[tuple[CommandId, NewRecord]]:
        """Write all of them, once, in the order in which they are to stand in the log."""

    def again(self, command_id: CommandId) -> NewRecord:
        """Write one of them a second time."""


class OneCommand:
    """A call of a single command."""

    def __init__(self, command_id: CommandId, record: NewRecord) -> None:
        self.chosen = (command_id,)
        self._record = record

    def __iter__(self) -> Iterator[tuple[CommandId, NewRecord]]:
        yield self.chosen[0], self._record

    def again(self, command_id: CommandId) -> NewRecord:
        """The record as it was."""
        if command_id not in self.chosen:
            raise KeyError(command_id)
        return self._record


class _Deadline:
    """The end of a wait; it moves when there is progress."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.renew()

    def renew(self) -> None:
        """Start the time again."""
        self._end = time.monotonic() + self._timeout

    @property
    def left(self) -> float:
        """Seconds, 0 when it has passed."""
        return max(0.0, self._end - time.monotonic())


class Exchange:
    """The two directions of one client: a sender, and an inbox that a task of its own reads.

    It closes the sender at its end; the inbox is the caller's to close. `positions` holds, for each
    partition, the last event that an answer named.
    """

    def __init__(self, inbox: Inbox, sender: Sender) -> None:
        self._inbox = inbox
        self._sender = sender
        self._pending = PendingReplies()
        self.positions: dict[Partition, identity.Sequence] = {}
        self._reading = asyncio.create_task(self._read(), name="tidelog client inbox")
        self._reading.add_done_callback(self._reading_ended)

    @property
    def pending(self) -> int:
        """How many commands wait for an answer."""
        return len(self._pending)

    async def ask(
        self, what: str, commands: Commands, *, timeout: float, resend: bool
    ) -> Mapping[CommandId, Reply]:
        """Send commands and wait for their answers.

        Args:
            what: the call, for messages ("enqueue of billing/42").
            commands: what is asked.
            timeout: seconds; it starts again whenever there is progress, so a long batch is not cut short.
            resend: what has no answer after half of the time is sent once more. Only for commands that an
                engine answers the second time like the first; once, since an engine that is merely behind
                must not be given ever more to do.

        Returns:
            The answers that came, perhaps not all of them.

        Raises:
            LogUnavailable: nothing was sent.
            ClientClosed: the client was closed before or meanwhile.
            ValueError: another call waits for the answer to one of the commands.

        A cancellation leaves nothing waiting here; whether the commands are decided is unknown.
        """
        with self._pending.expect(what) as expected:
            expected.expect(commands.chosen)
            deadline = _Deadline(timeout)
            is_confirmed = await self._deliver(what, commands, expected, deadline)
            patience = timeout / 2 if is_confirmed else 0.0
            while expected.missing:
                left = deadline.left
                if await expected.progress(timeout=min(patience, left) if resend else left):
                    deadline.renew()
                    patience = timeout / 2
                    continue
                if not resend or patience >= left:
                    break
                resend = False
                _logger.info("No answer to %s yet; it is sent once more.", what)
                missing = [(command_id, commands.again(command_id)) for command_id in expected.missing]
                with suppress(LogUnavailable):  # the first time may still be answered
                    await self._deliver(what, missing, expected, deadline)
            return expected.replies

    async def tell(self, what: str, record: NewRecord, *, timeout: float) -> None:
        """Return once the log has a command for good, which may then stand there twice.

        Raises:
            LogUnavailable: it was not sent.
            OutcomeUnknown: it may stand in the log or not.
            ClientClosed: the client was closed before or meanwhile.
        """
        deadline = _Deadline(timeout)
        unknown: OutcomeUnknown | None = None
        while unknown is None or deadline.left:
            try:
                await self._send(what, [record], deadline)
            except OutcomeUnknown as error:
                unknown = error
                await asyncio.sleep(_FIRST_PAUSE)
            except LogUnavailable:
                # Nothing of this try was sent, but of an earlier one something may have been.
                if unknown is None:
                    raise
                break
            else:
                return
        raise unknown

    async def close(self) -> None:
        """Fail the calls that wait, by name, and stop within a few seconds."""
        self._pending.close("The client was closed")
        await self._sender.close()
        self._reading.cancel()
        await asyncio.wait([self._reading], timeout=_CLOSE_TIMEOUT)

    async def _deliver(
        self,
        what: str,
        commands: Iterable[tuple[CommandId, NewRecord]],
        expected: Expectation,
        deadline: _Deadline,
    ) -> bool:
        """Send commands, each batch while the next is written.

        Returns:
            False when the log may lack some of them, which the missing answers will show.

        Raises:
            LogUnavailable: not one of them was sent.
        """
        is_first = is_confirmed = True
        async with aclosing(_batches(commands)) as batches:
            batch = await anext(batches, None)
            while batch is not None:
                expected.expect(batch)
                if not is_first:
                    deadline.renew()
                sending = asyncio.create_task(self._send(what, list(batch.values()), deadline))
                try:
                    batch = await anext(batches, None)
                    await sending
                except OutcomeUnknown as error:
                    is_confirmed = False
                    _logger.info("%s", error)
                except LogUnavailable:
                    if is_first:
                        raise
                    while batch is not None:
                        expected.expect(batch)
                        batch = await anext(batches, None)
                    return False
                finally:
                    sending.cancel()
                    await asyncio.wait([sending])
                is_first = False
        return is_confirmed

    async def _send(self, what: str, records: Sequence[NewRecord], deadline: _Deadline) -> None:
        """Send one batch, again and again while the log cannot be reached."""
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._sender.send(what, records, timeout=deadline.left)
            except LogUnavailable:
                if pause >= deadline.left:
                    raise
            else:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _read(self) -> None:
        while True:
            for answer in await self._inbox.read(timeout=_READ_TIMEOUT):
                if isinstance(answer, Reply):
                    known = self.positions.get(answer.partition, answer.sequence)
                    self.positions[answer.partition] = max(known, answer.sequence)
                    self._pending.settle(answer)

    def _reading_ended(self, reading: asyncio.Task[None]) -> None:
        """Without anybody who reads, no call can be answered: fail them now rather than by their timeouts."""
        if not reading.cancelled() and (error := reading.exception()) is not None:
            _logger.error("The client cannot read its answers any more.", exc_info=error)
            self._pending.close(f"The client cannot read its answers any more ({error})")


async def _batches(
    commands: Iterable[tuple[CommandId, NewRecord]],
) -> AsyncGenerator[Mapping[CommandId, NewRecord], None]:
    """Commands in portions that one append takes."""
    batch: dict[CommandId, NewRecord] = {}
    size, most = 0, _FIRST_BATCH_RECORDS
    for command_id, record in commands:
        bytes_more = len(record.value or b"")
        if batch and (len(batch) >= most or size + bytes_more > MAX_BATCH_BYTES):
            yield batch
            batch, size, most = {}, 0, min(2 * most, MAX_BATCH_RECORDS)
        batch[command_id] = record
        size += bytes_more
        if len(batch) % _WRITTEN_AT_ONCE == 0:
            await asyncio.sleep(0)
    if batch:
        yield batch
