"""The single writer of one partition: read, decide, commit, and so on (architecture: the engine)."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from tidelog.clock import Clock, wall_clock
from tidelog.core.changelog import InputPositions
from tidelog.core.decide import (
    answer_late_links,
    decide,
    end_parked_waits,
    fire_timers,
    home_partition,
    receive,
)
from tidelog.core.link import UnreadableMessage, decode_link
from tidelog.core.state import PartitionState, Retention
from tidelog.engine.batch import MESSAGE, Batch, record_bytes
from tidelog.engine.takeover import Tenure, take_over
from tidelog.log.port import MAX_RECORD_BYTES, Isolation, Log, Reader, Record, TopicPartition
from tidelog.log.topics import Topics
from tidelog_events.commands import Command
from tidelog_events.identity import Partition
from tidelog_events.instants import SECOND, Instant
from tidelog_events.parsing import NotACommand, Refusal, parse_command, read_object

logger = logging.getLogger("tidelog.engine")


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """The bounds of one partition's loop.

    Attributes:
        max_commands: read for one transaction.
        max_timers: of each kind, fired in one transaction.
        max_bytes: read and to be written, after which a transaction is committed even if commands are left
            over; so hostile commands, slow to refuse, cannot hold up the loop for long either.
        commit_seconds: the longest wait for a commit; then its outcome counts as unknown.
        idle_seconds: the longest wait for input, after which the loop looks whether it is to stop.
    """

    max_commands: int = 1_000
    max_timers: int = 1_000
    max_bytes: int = 4 * 1024 * 1024
    commit_seconds: float = 15.0
    idle_seconds: float = 0.25


class Processor:
    """Serves one partition for as long as nobody else does.

    Attributes:
        progress: the monotonic time at which a command was last begun; a watchdog reads it.
        serving: whether the takeover is done.
    """

    def __init__(
        self,
        log: Log,
        topics: Topics,
        partition: Partition,
        *,
        partitions: int,
        reply_partitions: int,
        retention: Retention,
        clock: Clock = wall_clock,
        settings: ProcessorSettings | None = None,
    ) -> None:
        self.partition = partition
        self.progress = time.monotonic()
        self.serving = False
        self._log = log
        self._topics = topics
        self._partitions = partitions
        self._reply_partitions = reply_partitions
        self._retention = retention
        self._clock = clock
        self._settings = settings or ProcessorSettings()
        self._stopping = False

    def stop(self) -> None:
        """End the tenure after the transaction in hand."""
        self._stopping = True

    async def serve(self) -> None:
        """Take the partition over and serve it until `stop`.

        Raises:
            Fenced: another engine has taken the partition over.
            LogError, EngineError: the tenure is over; state and writer are thrown away, take over again.

        A cancellation throws state and writer away too; what was not committed never happened.
        """
        tenure = await take_over(self._log, self._topics, self.partition, self._partitions, self._retention)
        try:
            await self._serve(tenure)
        finally:
            self.serving = False
            await tenure.writer.close()

    async def _serve(self, tenure: Tenure) -> None:
        commands = TopicPartition(self._topics.commands, self.partition)
        links = TopicPartition(self._topics.links, self.partition)
        batch = self._new_batch()
        batch.greet()
        await self._commit(tenure, batch)
        reader = await self._log.reader({commands: tenure.positions.commands, links: tenure.positions.links})
        self.serving = True
        logger.info("partition %d is served from event %d on", self.partition, tenure.state.sequence)
        try:
            while not self._stopping:
                self.progress = time.monotonic()
                await self._turn(tenure, reader)
        finally:
            await reader.close()

    async def _turn(self, tenure: Tenure, reader: Reader) -> None:
        records = await reader.read(
            max_records=self._settings.max_commands, timeout=self._patience(tenure.state)
        )
        now = self._clock()
        batch = self._new_batch()
        self._fire_timers(tenure.state, batch, now)
        until = await self._commands_end() if any(MESSAGE in record.headers for record in records) else 0
        for record in records:
            self.progress = time.monotonic()
            if MESSAGE in record.headers:
                self._receive(tenure.state, batch, record, now, until)
            else:
                self._take(tenure.state, batch, record, now)
            tenure.positions = _past(tenure.positions, record, self._topics)
            batch.size += len(record.value or b"")
            if batch.size >= self._settings.max_bytes:
                await self._commit(tenure, batch)
                batch = self._new_batch()
        if tenure.state.late_edges:
            handled = reader.position(TopicPartition(self._topics.commands, self.partition))
            batch.add(answer_late_links(tenure.state, now, handled))
        if records or batch:
            await self._commit(tenure, batch)

    def _patience(self, state: PartitionState) -> float:
        """How long input may be waited for: until a timer is due, or the loop must look up."""
        due = state.next_timer()
        if due is None:
            return self._settings.idle_seconds
        return min(max((due - self._clock()) / SECOND, 0.0), self._settings.idle_seconds)

    def _new_batch(self) -> Batch:
        return Batch(self._topics, self.partition, self._partitions, self._reply_partitions)

    async def _commit(self, tenure: Tenure, batch: Batch) -> None:
        await tenure.writer.append(
            batch.records(tenure.state, tenure.positions), timeout=self._settings.commit_seconds
        )

    def _fire_timers(self, state: PartitionState, batch: Batch, now: Instant) -> None:
        due = state.next_timer()
        if due is not None and due <= max(now, state.now):
            batch.add(fire_timers(state, now, self._settings.max_timers))
            batch.add(end_parked_waits(state, now))

    async def _commands_end(self) -> int:
        """The present end of the partition's commands, open transactions included."""
        return await self._log.end_offset(
            TopicPartition(self._topics.commands, self.partition), Isolation.UNCOMMITTED
        )

    def _receive(self, state: PartitionState, batch: Batch, record: Record, now: Instant, until: int) -> None:
        """Take a message of another partition in.

        A parent that is not known may stand among the commands that are not handled yet, since `links` and
        `commands` are two topics: its link is answered only when these are handled up to the end that they
        had after the message was read.
        """
        try:
            message = decode_link(record.value)
        except UnreadableMessage as error:
            self._reject(batch, record, str(error))
            return
        batch.add(receive(state, message, now, until=until))

    def _take(self, state: PartitionState, batch: Batch, record: Record, now: Instant) -> None:
        """Decide the command in a record, or send it on, or reject what is none."""
        try:
            command = parse_command(read_object(record.value))
        except NotACommand as error:
            self._reject(batch, record, str(error))
            return
        if not isinstance(command, Refusal):
            home = home_partition(command, self._partitions)
            if isinstance(home, Refusal):
                command = home
            elif home is not None and home != self.partition:
                self._send_on(batch, record, command, home)
                return
        if isinstance(command, Refusal) and command.reply_to is None:
            self._reject(batch, record, command.message)
            return
        source = 0 if record.topic == self._topics.commands else 1
        batch.add(decide(state, command, now, (source, record.offset)))

    def _send_on(self, batch: Batch, record: Record, command: Command, home: int) -> None:
        """A command is sent on once: one that stands in `links` has been, and is a reject."""
        if record.topic == self._topics.links:
            self._reject(
                batch,
                record,
                f"a {command.type} for partition {home} was sent on to partition {self.partition}",
            )
        elif record_bytes(record.key, record.value) > MAX_RECORD_BYTES:
            # A producer of another make may write more than the port takes.
            self._reject(batch, record, f"a {command.type} for partition {home} is too large to be sent on")
        else:
            batch.forward(record, home)

    def _reject(self, batch: Batch, record: Record, reason: str) -> None:
        logger.warning(
            "%s[%d] offset %d is rejected: %s", record.topic, record.partition, record.offset, reason
        )
        batch.reject(record, reason)


def _past(positions: InputPositions, record: Record, topics: Topics) -> InputPositions:
    if record.topic == topics.commands:
        return InputPositions(commands=record.offset + 1, links=positions.links)
    return InputPositions(commands=positions.commands, links=record.offset + 1)
