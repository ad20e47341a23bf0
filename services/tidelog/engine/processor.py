"""The single writer of one partition: read, decide, commit, and so on (architecture: the engine)."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

from tidelog.clock import Clock, wall_clock
from tidelog.core.decide import answer_late_links, end_parked_waits, fire_timers
from tidelog.core.state import PartitionState, Retention
from tidelog.engine.batch import Batch
from tidelog.engine.intake import Intake, is_message
from tidelog.engine.pipeline import Pipeline
from tidelog.engine.takeover import Tenure, take_over
from tidelog.log.port import Isolation, Log, Reader, Record, TopicPartition
from tidelog.log.topics import Topics
from tidelog_events.identity import Partition
from tidelog_events.instants import SECOND, Instant

logger = logging.getLogger("tidelog.engine")

_BREATH = 32
"""Commands decided in one go, a millisecond or two: a transaction under way takes several turns of the event
loop, and those of other partitions do as well."""
_SLOW_SECONDS = 0.2
"""Of one command: a megabyte of brackets takes seconds. Some of them in a row would use up the time that a
transaction under way has, so it ends first."""


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """The bounds of one partition's loop.

    Attributes:
        max_commands: read for one transaction.
        max_timers: of each kind, fired before commands are looked at again.
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

    While one transaction is under way the next batch is decided already, and sent off as soon as that one has
    ended: an engine under load never waits for its log, and an idle one answers a command at once.

    Attributes:
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
        self.serving = False
        self._log = log
        self._topics = topics
        self._partitions = partitions
        self._reply_partitions = reply_partitions
        self._retention = retention
        self._clock = clock
        self._settings = settings or ProcessorSettings()
        self._commands = TopicPartition(topics.commands, partition)
        self._links = TopicPartition(topics.links, partition)
        self._stopping = False
        self._began = time.monotonic()
        self._pipeline: Pipeline | None = None

    @property
    def progress(self) -> float:
        """The monotonic time since when nothing has moved, for a watchdog.

        That of the last command begun; or that at which the transaction under way began, if it is earlier: a
        loop that still decides behind a commit that hangs makes no progress.
        """
        under_way = None if self._pipeline is None else self._pipeline.began
        return self._began if under_way is None else min(self._began, under_way)

    def stop(self) -> None:
        """End the tenure once all that is decided stands in the log."""
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
        self._pipeline = pipeline = Pipeline(tenure, self._new_batch, self._settings.commit_seconds)
        try:
            pipeline.batch.greet(tenure.positions.commands)
            await pipeline.drain()
            await self._serve_inputs(tenure, pipeline)
        finally:
            await pipeline.break_off()

    async def _serve_inputs(self, tenure: Tenure, pipeline: Pipeline) -> None:
        reader = await self._log.reader(
            {self._commands: tenure.positions.commands, self._links: tenure.positions.links}
        )
        intake = Intake(self._topics, tenure.state, self._partitions)
        self.serving = True
        logger.debug("partition %d is served from event %d on", self.partition, tenure.state.sequence)
        try:
            while not self._stopping:
                self._began = time.monotonic()
                await self._turn(tenure, pipeline, intake, reader)
            await pipeline.drain()
        finally:
            await reader.close()

    async def _turn(self, tenure: Tenure, pipeline: Pipeline, intake: Intake, reader: Reader) -> None:
        """Decide what is there, or due, or comes within a short wait."""
        state = tenure.state
        room = self._settings.max_commands - pipeline.batch.taken
        records = await pipeline.meanwhile(reader.read(max_records=room, timeout=self._patience(state)))
        now = self._clock()
        self._fire_timers(state, pipeline.batch, now)
        until = await self._commands_end() if any(map(is_message, records)) else 0
        for number, record in enumerate(records, 1):
            self._began = time.monotonic()
            if is_message(record):
                intake.receive(pipeline.batch, record, now, until)
            else:
                intake.take(pipeline.batch, record, now)
            self._move_past(tenure, record)
            pipeline.batch.take_in(record)
            if pipeline.batch.size >= self._settings.max_bytes:
                await pipeline.make_room()
            elif time.monotonic() - self._began > _SLOW_SECONDS:
                await pipeline.settle()
                await asyncio.sleep(0)
            elif not number % _BREATH:
                await asyncio.sleep(0)
        if state.late_edges:
            pipeline.batch.add(answer_late_links(state, now, reader.position(self._commands)))
        if self._is_full(pipeline.batch):
            await pipeline.make_room()
        else:
            pipeline.offer()

    def _is_full(self, batch: Batch) -> bool:
        return batch.size >= self._settings.max_bytes or batch.taken >= self._settings.max_commands

    def _move_past(self, tenure: Tenure, record: Record) -> None:
        if record.topic == self._commands.topic:
            tenure.positions.commands = record.offset + 1
        else:
            tenure.positions.links = record.offset + 1

    def _patience(self, state: PartitionState) -> float:
        """How long input may be waited for: until a timer is due, or the loop must look up."""
        due = state.next_timer()
        if due is None:
            return self._settings.idle_seconds
        return min(max((due - self._clock()) / SECOND, 0.0), self._settings.idle_seconds)

    def _new_batch(self) -> Batch:
        return Batch(self._topics, self.partition, self._partitions, self._reply_partitions)

    def _fire_timers(self, state: PartitionState, batch: Batch, now: Instant) -> None:
        due = state.next_timer()
        if due is not None and due <= max(now, state.now):
            batch.add(fire_timers(state, now, self._settings.max_timers))
            batch.add(end_parked_waits(state, now))

    async def _commands_end(self) -> int:
        """The present end of the partition's commands, open transactions included."""
        return await self._log.end_offset(self._commands, Isolation.UNCOMMITTED)
