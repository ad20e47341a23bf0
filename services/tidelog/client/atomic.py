"""Sends commands that are to stand in the log whole or not at all: the client's own transaction.

Engines cannot read past an open transaction on the commands, whoever it belongs to. So all is written before
one is opened, it is small, nothing breaks it off from within, and its timeout is short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from tidelog.client.deadline import Deadline
from tidelog.client.errors import ClientClosed
from tidelog.log.port import Fenced, LogUnavailable, NewRecord, OutcomeUnknown, Writer

TRANSACTION_SECONDS: Final = 5.0
"""The timeout of the transaction. Kafka's brokers look for overdue ones every 10 s, unless they are told
otherwise: so long, at the longest, a client that dies or hangs in the middle holds up the engines of the
partitions that it wrote to."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class AtomicSender:
    """Appends of one client, one transaction at a time. The writer is opened for the first one.

    Args:
        open_writer: opens the writer of the client, and fences the one before.
    """

    def __init__(self, open_writer: Callable[[], Awaitable[Writer]]) -> None:
        self._open_writer = open_writer
        self._writer: Writer | None = None
        self._turn = asyncio.Lock()
        self._under_way: asyncio.Task[None] | None = None
        self._is_closed = False

    async def send(
        self, what: str, records: Sequence[NewRecord], deadline: Deadline, *, stands: Callable[[], bool]
    ) -> None:
        """Return once the log has all the records for good; it may then have them twice.

        What failed, or may have, is tried again until the deadline. A new writer ends the transaction that
        the one before has left open.

        Args:
            what: the call, for messages.
            records: all of them.
            deadline: of the whole call.
            stands: whether something else has shown meanwhile that the records stand.

        Raises:
            LogUnavailable: the log has none of the records.
            OutcomeUnknown: it has all of them or none.
            ClientClosed: the sender was closed before or meanwhile.
            LogError: the log refused the records.

        A cancellation before the transaction has begun takes it back; later, it goes on to its end.
        """
        unknown: OutcomeUnknown | None = None
        pause = _FIRST_PAUSE
        while True:
            failure: LogUnavailable | OutcomeUnknown
            try:
                await self._in_turn(what, records, deadline)
            except OutcomeUnknown as error:
                failure = unknown = error
            except LogUnavailable as error:
                failure = error
            else:
                return
            if unknown is not None and stands():
                return
            if pause >= deadline.left:
                raise unknown or failure
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def close(self) -> None:
        """Let the transaction that is under way end, within its own bound, and begin no other one."""
        self._is_closed = True
        under_way = self._under_way
        if under_way is not None:
            await asyncio.wait([under_way], timeout=TRANSACTION_SECONDS)
            under_way.cancel()
            await asyncio.wait([under_way])
        await self._give_up_writer()

    async def _in_turn(self, what: str, records: Sequence[NewRecord], deadline: Deadline) -> None:
        try:
            async with asyncio.timeout(deadline.left):
                await self._turn.acquire()
        except TimeoutError:
            raise LogUnavailable(
                f"Earlier transactions of this client took too long; {what} was not sent. Is the log "
                "overloaded?"
            ) from None
        if self._is_closed:
            self._turn.release()
            raise ClientClosed(f"The client was closed: {what} was not sent.")
        # A task of its own: were it broken off with its caller, the transaction would stay open.
        self._under_way = task = asyncio.create_task(
            self._append(records, deadline.left), name="tidelog client transaction"
        )
        task.add_done_callback(self._ended)
        await asyncio.wait([task])
        if task.cancelled():
            raise ClientClosed(f"The client was closed while {what} was sent; whether it stands is unknown.")
        task.result()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way = None
        self._turn.release()
        if not task.cancelled():
            task.exception()  # the caller may be gone, and asyncio complains of what nobody looks at

    async def _append(self, records: Sequence[NewRecord], timeout: float) -> None:
        writer = await self._opened(timeout)
        try:
            await writer.append(records, timeout=min(timeout, TRANSACTION_SECONDS))
        except Fenced as error:
            await self._give_up_writer()
            raise LogUnavailable(
                f"The log gave up a transaction of this client that was open for {TRANSACTION_SECONDS:g} s;"
                f" nothing was written. Was the process suspended? ({error})"
            ) from error
        except LogUnavailable:
            raise
        except BaseException:
            await self._give_up_writer()
            raise

    async def _opened(self, timeout: float) -> Writer:
        if self._writer is None:
            try:
                async with asyncio.timeout(timeout):
                    self._writer = await self._open_writer()
            except TimeoutError:
                raise LogUnavailable(
                    f"The log did not let this client begin a transaction within {timeout:g} s."
                ) from None
        return self._writer

    async def _give_up_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.close()
