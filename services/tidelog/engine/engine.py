"""An engine: the partitions that fall to it, each served by its own processor (architecture: ownership)."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

from tidelog.clock import Clock, wall_clock
from tidelog.core.state import Retention
from tidelog.engine.errors import EngineError
from tidelog.engine.processor import Processor, ProcessorSettings
from tidelog.log.port import Fenced, Log, LogError, Member, OutcomeUnknown
from tidelog.log.topics import Topics
from tidelog.pausing import Backoff, pause
from tidelog.words import listed
from tidelog_events.errors import TidelogError
from tidelog_events.identity import Partition

logger = logging.getLogger("tidelog.engine")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The waits of an engine, in seconds.

    Attributes:
        look_up: between two looks at the assignment and at the watchdog.
        stalled: without progress for so long a processor is killed and started anew. Above every bound of
            its own, so that only a real hang is caught.
        first_pause, longest_pause: before a partition is taken over again after a failure, doubling.
    """

    look_up: float = 0.25
    stalled: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 5.0


@dataclass(slots=True)
class EngineCounters:
    """What an engine has been through since it started."""

    takeovers: int = 0
    fenced: int = 0
    outcome_unknown: int = 0
    failures: int = 0
    stalled: int = 0


@dataclass(slots=True)
class _Served:
    """A partition that this engine serves, and the task that does it."""

    task: asyncio.Task[None]
    processor: Processor | None = None
    stopping: bool = False


@dataclass(slots=True)
class _Setup:
    partitions: int
    reply_partitions: int


@dataclass(slots=True)
class Engine:
    """Serves the partitions that a consumer group gives to it. The group is a hint: the fence decides.

    Start as many engines as you like: they share the partitions, and one that has none is the standby.
    """

    log: Log
    topics: Topics
    retention: Retention = field(default_factory=Retention)
    clock: Clock = wall_clock
    settings: EngineSettings = field(default_factory=EngineSettings)
    processor_settings: ProcessorSettings = field(default_factory=ProcessorSettings)
    counters: EngineCounters = field(default_factory=EngineCounters)
    _served: dict[int, _Served] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _told: frozenset[int] | None = None

    @property
    def serving(self) -> frozenset[int]:
        """The partitions whose takeover is done."""
        return frozenset(
            partition
            for partition, served in self._served.items()
            if served.processor is not None and served.processor.serving
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; then end the transactions in hand and leave the group.

        Raises:
            EngineError: the topics do not fit each other.
            LogError: the log cannot be reached at the start.

        A cancellation ends all at once; what was not committed never happened.
        """
        self._stop = stop
        setup = await self._check_topics()
        member = await self.log.join(self.topics.engine_group, self.topics.commands)
        try:
            while not stop.is_set():
                await self._look_up(member)
                self._follow(member.assignment, setup)
                self._watch()
                self._tell(member.assignment)
        finally:
            await self._end_all(in_order=stop.is_set())
            await member.close()

    async def _look_up(self, member: Member) -> None:
        try:
            await member.changed(timeout=self.settings.look_up)
        except LogError as error:
            logger.warning("the assignment cannot be read: %s", error)
            await pause(self._stop, self.settings.look_up)

    async def _check_topics(self) -> _Setup:
        """The four topics that are partitioned alike must have the same number of partitions."""
        names = (self.topics.commands, self.topics.links, self.topics.transitions, self.topics.state)
        counts = {name: await self.log.partitions(name) for name in names}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise EngineError(
                f"these topics must have the same number of partitions: {found}. Partition counts are "
                "fixed at creation: use another prefix, and `tidelog init`"
            )
        return _Setup(counts[self.topics.commands], await self.log.partitions(self.topics.replies))

    def _follow(self, assignment: frozenset[int], setup: _Setup) -> None:
        for partition in sorted(assignment - self._served.keys()):
            served = _Served(asyncio.create_task(self._keep_serving(Partition(partition), setup)))
            self._served[partition] = served
        for partition, served in list(self._served.items()):
            if partition not in assignment and not served.stopping:
                served.stopping = True
                if served.processor is not None:
                    served.processor.stop()
            if served.task.done():
                del self._served[partition]

    def _watch(self) -> None:
        """Kill what makes no progress: cancelled, it is started anew and takes over from the log."""
        for partition, served in self._served.items():
            processor = served.processor
            if processor is None or not processor.serving:
                continue
            if time.monotonic() - processor.progress > self.settings.stalled:
                self.counters.stalled += 1
                logger.error(
                    "partition %d made no progress for %.0f s; it is taken over anew",
                    partition,
                    self.settings.stalled,
                )
                served.task.cancel()

    def _tell(self, assignment: frozenset[int]) -> None:
        """Say what is served, once for each share: a line for every partition would hide what matters."""
        serving = self.serving
        if serving >= assignment and serving != self._told:
            self._told = serving
            if serving:
                logger.info("%s %s served", listed(serving), "is" if len(serving) == 1 else "are")
            else:
                logger.info(
                    "no partition is served here now: this engine is the standby, or the group still forms"
                )

    async def _keep_serving(self, partition: Partition, setup: _Setup) -> None:
        backoff = Backoff(self.settings.first_pause, self.settings.longest_pause)
        served = self._served[partition]
        while not self._stop.is_set() and not served.stopping:
            processor = Processor(
                self.log,
                self.topics,
                partition,
                partitions=setup.partitions,
                reply_partitions=setup.reply_partitions,
                retention=self.retention,
                clock=self.clock,
                settings=self.processor_settings,
            )
            served.processor = processor
            self.counters.takeovers += 1
            began = time.monotonic()
            try:
                await processor.serve()
            except Fenced:
                self.counters.fenced += 1
                logger.warning("partition %d is served by another engine now", partition)
            except OutcomeUnknown as error:
                self.counters.outcome_unknown += 1
                logger.warning("partition %d: %s", partition, error)
            except TidelogError as error:
                self.counters.failures += 1
                logger.warning("partition %d: %s", partition, error)
            except Exception:
                # A bug in one partition's path must not take the others down.
                self.counters.failures += 1
                logger.exception("partition %d failed; it is taken over anew", partition)
            else:
                return
            if time.monotonic() - began > self.settings.longest_pause:
                backoff.reset()
            await backoff.pause(self._stop)

    async def _end_all(self, *, in_order: bool) -> None:
        """Let the transactions in hand end, within their bound; or end at once what is not ended in order."""
        for served in self._served.values():
            served.stopping = True
            if served.processor is not None:
                served.processor.stop()
        late = {served.task for served in self._served.values()}
        if late and in_order:
            bound = self.processor_settings.commit_seconds + self.processor_settings.idle_seconds
            _, late = await asyncio.wait(late, timeout=bound)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        self._served.clear()
