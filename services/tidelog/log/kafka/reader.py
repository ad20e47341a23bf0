"""Reading partitions from given offsets, without a group."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping

import aiokafka
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import ConsumerStoppedError, KafkaError, OffsetOutOfRangeError
from aiokafka.structs import ConsumerRecord

from tidelog.log.kafka.connection import Connection, stop
from tidelog.log.kafka.offsets import KafkaOffsets
from tidelog.log.port import Isolation, LogError, Reader, Record, TopicPartition
from tidelog.log.signalled import out_of_range

_FETCH_BYTES = 4 * 1024 * 1024
"""Of one partition at a time."""
_FETCH_ALL_BYTES = 16 * 1024 * 1024
_FETCH_WAIT_MS = 500
_LOOK_UP_SECONDS = 0.05
_SILENT_SECONDS = 20.0
"""A broker answers a fetch within `_FETCH_WAIT_MS`, with records or without. One that has been silent for so
long is gone; aiokafka alone would go on trying and say nothing."""


class KafkaReader(Reader):
    """A consumer that was given its partitions by hand. An offset out of range is an error, never a reset."""

    def __init__(
        self,
        connection: Connection,
        bounds: KafkaOffsets,
        client: AIOKafkaConsumer,
        offsets: Mapping[TopicPartition, int],
        isolation: Isolation,
    ) -> None:
        self._connection = connection
        self._bounds = bounds
        self._client = client
        is_committed = isolation is Isolation.COMMITTED
        self._end_of: Callable[[aiokafka.TopicPartition], int | None] = (
            client.last_stable_offset if is_committed else client.highwater
        )
        self._partitions = {tp: aiokafka.TopicPartition(*tp) for tp in offsets}
        self._positions = dict(offsets)
        self._paused: set[TopicPartition] = set()
        self._last_fetch = 0
        self._heard_at = time.monotonic()
        self.closed = False

    @classmethod
    async def open(
        cls,
        connection: Connection,
        bounds: KafkaOffsets,
        offsets: Mapping[TopicPartition, int],
        isolation: Isolation,
    ) -> KafkaReader:
        """Connect and begin to fetch. Raises `LogUnavailable`."""
        client = AIOKafkaConsumer(
            **connection.options(),
            isolation_level=isolation.value,
            auto_offset_reset="none",
            enable_auto_commit=False,
            max_partition_fetch_bytes=_FETCH_BYTES,
            fetch_max_bytes=_FETCH_ALL_BYTES,
            fetch_max_wait_ms=_FETCH_WAIT_MS,
        )
        await connection.start(client, "a reader was opened")
        reader = cls(connection, bounds, client, offsets, isolation)
        client.assign(list(reader._partitions.values()))
        for tp, offset in offsets.items():
            client.seek(reader._partitions[tp], offset)
        return reader

    async def read(self, *, max_records: int, timeout: float) -> list[Record]:
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {max_records}")
        if self.closed:
            raise self._connection.closed()
        # A reader with a long backlog would otherwise never let go of the loop.
        await asyncio.sleep(0)
        try:
            found = await self._take(max_records)
            if not found and timeout > 0:
                found = await self._wait(max_records, timeout)
            await self._follow_positions()
        except OffsetOutOfRangeError as error:
            raise await self._out_of_range(error) from error
        except ConsumerStoppedError:  # meanwhile, and it is no KafkaError
            raise self._connection.closed() from None
        except KafkaError as error:
            raise self._connection.unavailable("records were read", error) from error
        self._watch(answered=bool(found))
        return [Record(r.topic, r.partition, r.offset, r.key, r.value, tuple(r.headers)) for r in found]

    def position(self, tp: TopicPartition) -> int:
        self._refuse_stranger(tp)
        return self._positions[tp]

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._refuse_stranger(tp)
        self._client.seek(self._partitions[tp], offset)
        self._positions[tp] = offset

    def pause(self, tp: TopicPartition) -> None:
        self._refuse_stranger(tp)
        self._client.pause(self._partitions[tp])
        self._paused.add(tp)

    def resume(self, tp: TopicPartition) -> None:
        self._refuse_stranger(tp)
        if tp in self._paused:
            self._client.resume(self._partitions[tp])
            self._paused.remove(tp)

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            await stop(self._client)

    async def _take(self, max_records: int) -> list[ConsumerRecord]:
        """What has been fetched already, without waiting.

        Partition by partition, beginning after the one that was served last: aiokafka by itself empties what
        it has fetched of one partition before it turns to the next.
        """
        found: list[ConsumerRecord] = []
        for tp in self._active():
            partition = self._partitions[tp]
            wanted = max_records - len(found)
            try:
                fetched = await self._client.getmany(partition, timeout_ms=0, max_records=wanted)
            except KafkaError:
                if found:  # the next fetch meets it again, and these would not come again
                    break
                raise
            if fetched:
                self._partitions[tp] = self._partitions.pop(tp)
                found += fetched[partition]
            if len(found) == max_records:
                break
        return found

    async def _wait(self, max_records: int, timeout: float) -> list[ConsumerRecord]:
        """The next records, whenever they come.

        Nothing, and early, once it has come past aborted transactions: somebody who reads up to an end must
        not wait there for a record that may never be written. aiokafka does not wake up for that.
        """
        deadline = time.monotonic() + timeout
        active = self._active()
        if not active:  # without a name, aiokafka would take all of them
            await asyncio.sleep(timeout)
            return []
        while True:
            before = dict(self._positions)
            remaining = max(0.0, deadline - time.monotonic())
            patience = remaining if self._is_at_the_end() else min(remaining, _LOOK_UP_SECONDS)
            fetched = await self._client.getmany(
                *(self._partitions[tp] for tp in active),
                timeout_ms=math.ceil(patience * 1_000),
                max_records=max_records,
            )
            if fetched:
                return [record for records in fetched.values() for record in records]
            await self._follow_positions()
            if patience == remaining or self._positions != before:
                return []

    def _active(self) -> list[TopicPartition]:
        return [tp for tp in self._partitions if tp not in self._paused]

    def _is_at_the_end(self) -> bool:
        """Whether all has been read that was in the log at the last fetch."""
        for tp in self._active():
            end = self._end_of(self._partitions[tp])
            if end is None or self._positions[tp] < end:
                return False
        return True

    async def _follow_positions(self) -> None:
        """They move past the markers of transactions, too, which no record tells.

        This never waits, so that no cancellation can come between a record and its reader: a partition that
        was given an offset has a position.
        """
        for tp, partition in self._partitions.items():
            self._positions[tp] = await self._client.position(partition)

    def _watch(self, *, answered: bool) -> None:
        """Raise `LogUnavailable` when the brokers have been silent for long."""
        last_fetch = max(self._client.last_poll_timestamp(tp) or 0 for tp in self._partitions.values())
        now = time.monotonic()
        if answered or last_fetch != self._last_fetch or len(self._paused) == len(self._partitions):
            self._last_fetch = last_fetch
            self._heard_at = now
        elif now - self._heard_at > _SILENT_SECONDS:
            raise self._connection.unavailable(
                f"records were read, and for {_SILENT_SECONDS:.0f} s none came"
            )

    async def _out_of_range(self, error: OffsetOutOfRangeError) -> LogError:
        (refused,) = error.args
        partition, offset = next(iter(refused.items()))
        tp = TopicPartition(*partition)
        return out_of_range(
            tp, offset, await self._bounds.start(tp), await self._bounds.end(tp, Isolation.UNCOMMITTED)
        )

    def _refuse_stranger(self, tp: TopicPartition) -> None:
        if tp not in self._partitions:
            raise LogError(f"This reader was not opened for {tp.topic}[{tp.partition}].")
