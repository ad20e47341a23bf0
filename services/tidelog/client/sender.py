"""Sends records in batches: what is asked for at the same time goes to the log in one append.

While one append is under way the next batch gathers, so that batches grow with load, and a bound on what
waits holds back the callers when the log is slow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidelog.client.errors import ClientClosed
from tidelog.log.port import LogUnavailable, NewRecord, OutcomeUnknown, Producer

MAX_BATCH_RECORDS = 1_000
MAX_BATCH_BYTES = 4 * 1024 * 1024
_MAX_WAITING_CALLS = 10_000
_APPEND_TIMEOUT = 5.0
"""Seconds; one append is at most `MAX_BATCH_BYTES`, so a log that needs longer is not well."""


@dataclass(slots=True, eq=False)
class _Parcel:
    """The records of one call; they are sent together, or not at all while nobody wants them any more."""

    what: str
    records: Sequence[NewRecord]
    sent: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    is_on_its_way: bool = False

    @property
    def size(self) -> int:
        return sum(len(record.value or b"") for record in self.records)

    def settle(self, error: BaseException | None) -> None:
        if self.sent.done():
            return
        if error is None:
            self.sent.set_result(None)
        else:
            self.sent.set_exception(error)


class Sender:
    """Gathers what concurrent calls send into appends of a producer. It closes the producer at its end.

    Args:
        producer: where the records go.
        max_waiting: how many calls may wait in here; the ones beyond wait for a place first.
    """

    def __init__(self, producer: Producer, *, max_waiting: int = _MAX_WAITING_CALLS) -> None:
        self._producer = producer
        self._waiting: deque[_Parcel] = deque()
        self._under_way: list[_Parcel] = []
        self._room = asyncio.Semaphore(max_waiting)
        self._wake = asyncio.Event()
        self._closed: str | None = None
        self._task = asyncio.create_task(self._run(), name="tidelog client sender")

    async def send(self, what: str, records: Sequence[NewRecord], *, timeout: float) -> None:
        """Return once the log has the records for good.

        A cancellation takes back what is not on its way yet; of the rest, the outcome is unknown.

        Args:
            what: the call, for messages.
            records: at most a batch of them; they stay together and in order.

        Raises:
            LogUnavailable: the log cannot be reached, or was busy for `timeout` seconds; nothing was sent.
            OutcomeUnknown: sent, and not confirmed within `timeout` seconds.
            ClientClosed: the sender was closed before or meanwhile.
            LogError: the log refused the records.
        """
        parcel = _Parcel(what, records)
        try:
            async with asyncio.timeout(timeout), self._room:
                if self._closed is not None:
                    raise ClientClosed(f"{self._closed}: {what} was not sent.")
                self._waiting.append(parcel)
                self._wake.set()
                await parcel.sent
        except TimeoutError:
            if parcel.is_on_its_way:
                raise OutcomeUnknown(f"The log did not confirm {what} within {timeout:g} s.") from None
            raise LogUnavailable(
                f"The log did not take {what} within {timeout:g} s; it was not sent. Is the log overloaded?"
            ) from None

    async def close(self, reason: str = "The client was closed") -> None:
        """Stop at once. Calls that wait fail by name; the records under way may come into the log or not."""
        if self._closed is None:
            self._closed = reason
        self._task.cancel()
        await asyncio.wait([self._task], timeout=_APPEND_TIMEOUT)
        for parcel in self._under_way:
            parcel.settle(
                ClientClosed(f"{self._closed} while {parcel.what} was sent; whether it stands is unknown.")
            )
        for parcel in self._waiting:
            parcel.settle(ClientClosed(f"{self._closed}: {parcel.what} was not sent."))
        self._waiting.clear()
        await self._producer.close()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._take():
                await self._append()

    def _take(self) -> bool:
        """Move the next batch from what waits to what is under way; False when nothing waits."""
        batch: list[_Parcel] = []
        count = size = 0
        while self._waiting:
            parcel = self._waiting[0]
            if parcel.sent.done():  # its caller has given up: nothing may be sent behind its back
                self._waiting.popleft()
                continue
            count += len(parcel.records)
            size += parcel.size
            if batch and (count > MAX_BATCH_RECORDS or size > MAX_BATCH_BYTES):
                break
            self._waiting.popleft()
            parcel.is_on_its_way = True
            batch.append(parcel)
        self._under_way = batch
        return bool(batch)

    async def _append(self) -> None:
        records = [record for parcel in self._under_way for record in parcel.records]
        error: Exception | None = None
        try:
            await self._producer.append(records, timeout=_APPEND_TIMEOUT)
        except Exception as raised:  # noqa: BLE001 - whatever it is, the callers must hear of it, not this task
            error = raised
        for parcel in self._under_way:
            parcel.settle(error)
        self._under_way = []
