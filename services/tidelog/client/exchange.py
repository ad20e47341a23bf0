"""Sends commands and brings back their answers: batching, matching, one resend, and bounded waits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

from tidelog.client.atomic import AtomicSender
from tidelog.client.deadline import Deadline
from tidelog.client.inbox import Inbox
from tidelog.client.pending import Expectation, PendingReplies
from tidelog.client.portions import Commands, portions
from tidelog.client.sender import Sender
from tidelog.log.port import LogUnavailable, NewRecord, OutcomeUnknown
from tidelog_events import identity
from tidelog_events.identity import CommandId, Partition
from tidelog_events.replies import Reply

_logger = logging.getLogger(__name__)

_READ_TIMEOUT = 5.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_CLOSE_TIMEOUT = 5.0


class Channel(Protocol):
    """What a client needs of its exchange; the testing kit has one without a log."""

    @property
    def pending(self) -> int:
        """How many commands wait for an answer."""
        ...

    async def ask(
        self, what: str, commands: Commands, *, timeout: float, resend: bool
    ) -> Mapping[CommandId, Reply]:
        """Send commands and wait for their answers; perhaps not all come."""
        ...

    async def ask_whole(
        self, what: str, records: Mapping[CommandId, NewRecord], *, timeout: float
    ) -> Mapping[CommandId, Reply]:
        """The same, with all of the commands in the log or none."""
        ...

    async def tell(self, what: str, record: NewRecord, *, timeout: float) -> None:
        """Send a command, and return once it is sure to be decided."""
        ...


class Exchange:
    """The two directions of one client: its senders, and an inbox that a task of its own reads.

    It closes the senders at its end; the inbox is the caller's to close. `positions` holds, for each
    partition, the last event that an answer named.
    """

    def __init__(self, inbox: Inbox, sender: Sender, atomic: AtomicSender) -> None:
        self._inbox = inbox
        self._sender = sender
        self._atomic = atomic
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
            deadline = Deadline(timeout)
            is_confirmed = await self._deliver(what, commands, expected, deadline)
            patience = timeout / 2 if is_confirmed else 0.0
            return await self._answers(expected, commands.again if resend else None, deadline, patience)

    async def ask_whole(
        self, what: str, records: Mapping[CommandId, NewRecord], *, timeout: float
    ) -> Mapping[CommandId, Reply]:
        """Send commands in one transaction and wait for their answers, as `ask` does with `resend`.

        They can be sent one by one for the second time, since all of them stand in the log by then.

        Raises:
            LogUnavailable: nothing was sent.
            OutcomeUnknown: all of them stand in the log, or none; nothing was answered.
            ClientClosed: the client was closed before or meanwhile.
            ValueError: another call waits for the answer to one of the commands.

        A cancellation leaves nothing waiting here. A transaction that has begun is brought to its end, so
        that it holds up nobody; whether that is a commit is unknown.
        """
        with self._pending.expect(what) as expected:
            expected.expect(records)
            deadline = Deadline(timeout)
            await self._atomic.send(
                what, list(records.values()), deadline, stands=lambda: bool(expected.replies)
            )
            deadline.renew()
            return await self._answers(expected, records.__getitem__, deadline, timeout / 2)

    async def tell(self, what: str, record: NewRecord, *, timeout: float) -> None:
        """Return once the log has a command for good, which may then stand there twice.

        Raises:
            LogUnavailable: it was not sent.
            OutcomeUnknown: it may stand in the log or not.
            ClientClosed: the client was closed before or meanwhile.
        """
        deadline = Deadline(timeout)
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
        await asyncio.gather(self._sender.close(), self._atomic.close())
        self._reading.cancel()
        await asyncio.wait([self._reading], timeout=_CLOSE_TIMEOUT)

    async def _answers(
        self,
        expected: Expectation,
        again: Callable[[CommandId], NewRecord] | None,
        deadline: Deadline,
        patience: float,
    ) -> Mapping[CommandId, Reply]:
        """Wait for the answers, and after so many seconds without any send once more what has none."""
        what = expected.what
        while expected.missing:
            left = deadline.left
            if await expected.progress(timeout=left if again is None else min(patience, left)):
                deadline.renew()
                patience = deadline.left / 2
                continue
            if again is None or patience >= left:
                break
            _logger.info("No answer to %s yet; it is sent once more.", what)
            missing = [(command_id, again(command_id)) for command_id in expected.missing]
            again = None
            with suppress(LogUnavailable):  # the first time may still be answered
                await self._deliver(what, missing, expected, deadline)
        return expected.replies

    async def _deliver(
        self,
        what: str,
        commands: Iterable[tuple[CommandId, NewRecord]],
        expected: Expectation,
        deadline: Deadline,
    ) -> bool:
        """Send commands, each batch while the next is written.

        Returns:
            False when the log may lack some of them, which the missing answers will show.

        Raises:
            LogUnavailable: not one of them was sent.
        """
        is_first = is_confirmed = True
        async with aclosing(portions(commands)) as batches:
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
                    if not sending.done():  # the call was cancelled, or a command could not be written
                        sending.cancel()
                        await asyncio.wait([sending])
                is_first = False
        return is_confirmed

    async def _send(self, what: str, records: Sequence[NewRecord], deadline: Deadline) -> None:
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
