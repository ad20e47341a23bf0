"""The inbox of one client or worker: what the engines say to it on the replies topic (contract section 5).

Clients and workers read alike, each on an event loop of its own; so the inbox knows nothing of either, and
hands out whatever is addressed to its id, plus the `hello` of an engine that has taken over a partition.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from tidelog.log.port import Log, LogError, LogUnavailable, OffsetOutOfRange, Reader, Record, TopicPartition
from tidelog.log.topics import Topics
from tidelog_events.codec import Undecodable, decode_answer
from tidelog_events.identity import ClientId, partition_of
from tidelog_events.replies import Answer

_logger = logging.getLogger(__name__)

_MAX_RECORDS = 1_000
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
"""Seconds between two tries while the log is away: short enough that a broker's restart is hardly noticed."""


class InboxNotStarted(LogError):
    """An inbox was read before `start`, or after `close`."""


class Inbox:
    """Reads the one partition of the replies topic on which the answers for an id arrive.

    One task at a time may read. It belongs to the event loop that started it.

    Args:
        log: an open log; the caller closes it.
        topics: the names of the installation's topics.
        client_id: what the commands carry as `reply_to`.
    """

    def __init__(self, log: Log, topics: Topics, client_id: ClientId) -> None:
        self._log = log
        self._topic = topics.replies
        self._client_id = client_id
        self._key = client_id.encode()
        self._at: TopicPartition | None = None
        self._reader: Reader | None = None
        self._pause = 0.0

    @property
    def client_id(self) -> ClientId:
        """Whose inbox this is."""
        return self._client_id

    async def start(self) -> None:
        """Take the end of the partition as the beginning: what is answered from now on is read.

        Call it before the first command is sent, or its answer may be missed. A cancellation leaves nothing
        behind that `close` of the log would not end.

        Raises:
            UnknownTopic: there is no replies topic.
            LogUnavailable: the log does not answer.
        """
        partitions = await self._log.partitions(self._topic)
        at = TopicPartition(self._topic, partition_of(self._client_id, partitions))
        self._reader = await self._log.reader({at: await self._log.end_offset(at)})
        self._at = at

    async def read(self, *, timeout: float) -> list[Answer]:
        """The next answers, in the order in which they were written, as soon as there is one.

        Empty when `timeout` seconds pass first, when all that came was for others, and when the log is away
        (after a pause that grows to two seconds, never beyond `timeout`): simply read again. Nothing is lost
        by an outage, since the position stays; answers that retention took are skipped and logged. What
        cannot be decoded is logged and passed over, as are kinds that this release does not know.
        A cancellation loses nothing.

        Raises:
            InboxNotStarted: `start` has not returned yet, or the inbox is closed.
        """
        if self._reader is None or self._at is None:
            raise InboxNotStarted(f"The inbox of {self._client_id!r} is not started; call start() first.")
        deadline = time.monotonic() + timeout
        try:
            records = await self._reader.read(max_records=_MAX_RECORDS, timeout=timeout)
        except OffsetOutOfRange as error:
            await self._go_on_after(error, self._reader, self._at, deadline)
            return []
        except LogUnavailable as error:
            await self._pause_for(error, deadline)
            return []
        if self._pause:
            self._pause = 0.0
            _logger.info("The inbox of %r reads the log again.", self._client_id)
        return self._decode(records)

    async def close(self) -> None:
        """Stop reading. May be called again."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    def _decode(self, records: Sequence[Record]) -> list[Answer]:
        answers: list[Answer] = []
        for record in records:
            # A partition is shared by many clients; only what has our key, or none (a hello), is decoded.
            if record.key is not None and record.key != self._key:
                continue
            try:
                answer = decode_answer(record.value)
            except Undecodable as error:
                _logger.warning(
                    "Passed over record %d of %s[%d], which is no answer: %s",
                    record.offset,
                    record.topic,
                    record.partition,
                    error,
                )
                continue
            if answer is not None:
                answers.append(answer)
        return answers

    async def _go_on_after(
        self, error: OffsetOutOfRange, reader: Reader, at: TopicPartition, deadline: float
    ) -> None:
        """Retention overtook the inbox (its process was suspended, say): go on with the oldest left."""
        try:
            start, end = await self._log.start_offset(at), await self._log.end_offset(at)
        except LogUnavailable as unavailable:
            await self._pause_for(unavailable, deadline)
            return
        position = reader.position(at)
        reader.seek(at, start if position < start else end)
        _logger.warning("The inbox of %r may have missed answers: %s", self._client_id, error)

    async def _pause_for(self, error: LogUnavailable, deadline: float) -> None:
        if not self._pause:
            _logger.warning("The inbox of %r cannot read the log and tries again: %s", self._client_id, error)
        self._pause = min(self._pause * 2 or _FIRST_PAUSE, _LONGEST_PAUSE)
        await asyncio.sleep(max(0.0, min(self._pause, deadline - time.monotonic())))
