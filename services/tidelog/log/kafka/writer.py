"""The fenced writer: one transaction at a time, confirmed to its last batch before it is committed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from enum import Enum, auto

from aiokafka import AIOKafkaProducer
from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

from tidelog.log.checks import refuse_oversized
from tidelog.log.kafka.batches import MAX_BATCH_BYTES, MAX_REQUEST_BYTES, send
from tidelog.log.kafka.connection import CLOSE_SECONDS, Connection, logger, stop
from tidelog.log.kafka.failures import append_failure
from tidelog.log.kafka.topics import KafkaTopics
from tidelog.log.kafka.tuning import WRITER_RETRY_BACKOFF_MS, spare_the_unreachable
from tidelog.log.port import Fenced, LogError, NewRecord, OutcomeUnknown, Writer

_ABORT_SECONDS = 3.0


class _State(Enum):
    """aiokafka answers the misuse of a transactional producer by `assert`; so misuse ends here."""

    READY = auto()
    APPENDING = auto()
    DEAD = auto()
    CLOSED = auto()


class KafkaWriter(Writer):
    """A transactional producer. It dies of the first append that a broker fails, whatever the reason.

    What is wrong with the records themselves is found before anything is sent, and leaves it alive. Once an
    append returns, the transaction stands; its partitions show it one by one within milliseconds, as the
    broker marks them.
    """

    def __init__(
        self, connection: Connection, topics: KafkaTopics, client: AIOKafkaProducer, transactional_id: str
    ) -> None:
        self._connection = connection
        self._topics = topics
        self._client = client
        self._name = f"the writer {transactional_id!r}"
        self._state = _State.READY
        self._cause: LogError | None = None

    @classmethod
    async def open(
        cls, connection: Connection, topics: KafkaTopics, transactional_id: str, transaction_seconds: float
    ) -> KafkaWriter:
        """Connect and fence every earlier writer: the broker aborts its transaction, and takes no other one.

        Raises:
            LogUnavailable: no broker was ready for that in time.
        """
        client = AIOKafkaProducer(
            **connection.options(),
            transactional_id=transactional_id,
            transaction_timeout_ms=math.ceil(transaction_seconds * 1_000),
            acks="all",
            retry_backoff_ms=WRITER_RETRY_BACKOFF_MS,
            max_batch_size=MAX_BATCH_BYTES,
            max_request_size=MAX_REQUEST_BYTES,
        )
        spare_the_unreachable(client)
        await connection.start(client, f"the writer {transactional_id!r} was opened")
        return cls(connection, topics, client, transactional_id)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._state is _State.CLOSED

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> None:
        self._refuse_misuse()
        if not records:
            return
        refuse_oversized(records)
        self._state = _State.APPENDING
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            with self._connection.explaining(f"{self._name} was to append"):
                async with asyncio.timeout_at(deadline):
                    await self._topics.check_records(records)
        except BaseException:
            self._be_ready()  # nothing was sent yet
            raise
        try:
            async with asyncio.timeout_at(deadline):
                await self._run_transaction(records)
        except TimeoutError:
            raise self._die(
                OutcomeUnknown(
                    f"{self._connection.address} did not answer {self._name} within {timeout:g} s; its"
                    " transaction may have been committed."
                )
            ) from None
        except OutcomeUnknown as unknown:
            raise self._die(unknown) from unknown.__cause__
        except KafkaError as error:
            self._topics.forget(records)
            raise self._die(append_failure(self._connection.address, self._name, error)) from error
        except BaseException:
            self._die(OutcomeUnknown(f"An append of {self._name} was broken off."))
            raise
        self._be_ready()

    async def close(self) -> None:
        if self._state is _State.CLOSED:
            return
        # What a dead one still holds is of no use to anybody: there is nothing to wait for.
        seconds = CLOSE_SECONDS if self._state is _State.READY else 0
        self._state = _State.CLOSED
        await stop(self._client, seconds=seconds)
        self._retrieve_lost_errors()

    async def _run_transaction(self, records: Sequence[NewRecord]) -> None:
        await self._client.begin_transaction()
        # aiokafka commits a transaction although one of its messages was refused: every one is awaited first.
        sent = await send(self._client, records)
        try:
            await sent.confirmed()
        except KafkaError as error:
            if not isinstance(error, ProducerFenced):
                await self._abort()
            raise
        try:
            await self._client.commit_transaction()
        except (ProducerFenced, InvalidProducerEpoch) as error:
            # aiokafka asks again when an answer was lost, as that of a broker that is killed: the transaction
            # may have been committed the first time, and the epoch have moved on since.
            raise OutcomeUnknown(
                f"{self._connection.address} takes no more from {self._name}, whose last transaction may have"
                f" been committed: {error}"
            ) from error

    async def _abort(self) -> None:
        """End the transaction, so that no reader has to wait for its timeout. It is not committed anyway."""
        try:
            async with asyncio.timeout(_ABORT_SECONDS):
                await self._client.abort_transaction()
        except (TimeoutError, KafkaError, AssertionError) as error:
            # An AssertionError is aiokafka's way to say that the producer has failed for good (fenced).
            logger.debug("%s could not abort: %r", self._name, error)

    def _refuse_misuse(self) -> None:
        if self._state is _State.CLOSED:
            raise self._connection.closed()
        if self._state is _State.APPENDING:
            raise LogError(f"{self._name} is appending already; append one after the other.")
        if isinstance(self._cause, Fenced):
            raise Fenced(str(self._cause))
        if self._cause is not None:
            raise OutcomeUnknown(f"{self._name} cannot be used any more, open another one: {self._cause}")

    def _be_ready(self) -> None:
        if self._state is not _State.CLOSED:  # somebody may have closed it meanwhile
            self._state = _State.READY

    def _die(self, cause: LogError) -> LogError:
        if self._state is not _State.CLOSED:
            self._state = _State.DEAD
        self._cause = cause
        return cause

    def _retrieve_lost_errors(self) -> None:
        """aiokafka leaves a fatal error in futures that nobody awaits; asyncio would report each of them."""
        manager, accumulator = self._client._txn_manager, self._client._message_accumulator  # noqa: SLF001
        futures: list[asyncio.Future[None] | None] = [manager.wait_for_transaction_end()]
        futures += [batch._drain_waiter for batches in accumulator._batches.values() for batch in batches]  # noqa: SLF001
        for future in futures:
            if future is not None and future.done() and not future.cancelled():
                future.exception()
