"""Dead letters that somebody wants delivered again, on the observer's own process and by the same machinery.

A request stands on the dead-letter topic behind the letters that it means. Whoever of the observer's
processes owns that partition delivers them in their order; the offset of the redrive group says up to where
letters are done with, and moves past a letter only when it is: delivered, or a new letter behind the request.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import Final

from tidelog.log.port import Log, LogUnavailable, Member, OffsetOutOfRange, Record, TopicPartition
from tidelog.log.scan import scan
from tidelog.log.topics import Topics
from tidelog.observer.dead_letters import DeadLetter, RedriveRequest, home_of
from tidelog.observer.definition import ObserverDefinition
from tidelog.observer.delivery import Deliveries
from tidelog.observer.jobs import find_job
from tidelog.pausing import Backoff
from tidelog_events.codec import Undecodable, UnknownVersion, decode_transition

_logger: Final = logging.getLogger("tidelog.observer")

_READ_RECORDS: Final = 200
_COMMIT_TIMEOUT: Final = 10.0


class Redriver:
    """Carries out the redrive requests of one observer.

    Args:
        idle_seconds: between two looks while there is nothing to do; a stop is heard of within it.
    """

    def __init__(
        self,
        log: Log,
        topics: Topics,
        definition: ObserverDefinition,
        deliveries: Deliveries,
        *,
        idle_seconds: float,
    ) -> None:
        self._idle_seconds = idle_seconds
        self._log = log
        self._topics = topics
        self._definition = definition
        self._deliveries = deliveries

    async def run(self, stop: asyncio.Event) -> None:
        """Wait for requests and carry them out until `stop` is set. While the log is away it waits."""
        backoff = Backoff()
        while not stop.is_set():
            try:
                group = self._topics.redrive_group(self._definition.observer_id)
                member = await self._log.join(group, self._topics.observer_dead_letters)
                try:
                    await self._stay(member, stop)
                finally:
                    await member.close()
                backoff.reset()
            except (LogUnavailable, OffsetOutOfRange) as error:
                self._deliveries.counters.retries += 1
                _logger.warning(
                    "observer %s waits for redrives again in %.1f s: %s",
                    self._definition.observer_id,
                    backoff.seconds,
                    error,
                )
                await backoff.pause(stop)

    async def _stay(self, member: Member, stop: asyncio.Event) -> None:
        topic = self._topics.observer_dead_letters
        home = home_of(topic, self._definition.observer_id, await self._log.partitions(topic))
        while not stop.is_set():
            if home.partition in member.assignment:
                await self._serve(member, home, stop)
            await member.changed(timeout=self._idle_seconds)

    async def _serve(self, member: Member, home: TopicPartition, stop: asyncio.Event) -> None:
        """Read on from the first letter that is not done with, as long as the partition is here."""
        start = await self._log.start_offset(home)
        committed = await member.committed(home.partition)
        position = start if committed is None else max(start, committed)
        reader = await self._log.reader({home: position})
        try:
            while not stop.is_set() and home.partition in member.assignment:
                for record in await reader.read(max_records=_READ_RECORDS, timeout=self._idle_seconds):
                    request = RedriveRequest.read(record)
                    if (
                        request is not None
                        and request.observer_id == self._definition.observer_id
                        and position <= request.through < record.offset
                    ):
                        position = await self._carry_out(member, home, position, request, stop)
                        if position <= request.through:
                            return
                await member.changed(timeout=0)
        finally:
            await reader.close()

    async def _carry_out(
        self,
        member: Member,
        home: TopicPartition,
        position: int,
        request: RedriveRequest,
        stop: asyncio.Event,
    ) -> int:
        """Deliver the letters of the observer up to the one that was asked for; where it has come to."""
        _logger.info(
            "observer %s: dead letters up to offset %d are redriven for %s",
            request.observer_id,
            request.through,
            request.actor,
        )
        seen: set[tuple[int, int]] = set()
        async with aclosing(scan(self._log, home, request.through + 1, begin=position)) as parts:
            async for records, _ in parts:
                for record in records:
                    letter = DeadLetter.read(record)
                    if letter is None or letter.observer_id != request.observer_id or letter.identity in seen:
                        continue
                    is_here = home.partition in member.assignment
                    if not is_here or not await self._deliver(letter, record, stop):
                        return position
                    seen.add(letter.identity)
                    position = record.offset + 1
                    await member.commit({home.partition: position}, timeout=_COMMIT_TIMEOUT)
        position = request.through + 1
        await member.commit({home.partition: position}, timeout=_COMMIT_TIMEOUT)
        return position

    async def _deliver(self, letter: DeadLetter, record: Record, stop: asyncio.Event) -> bool:
        """One letter; False when a stop came first."""
        # As it stood in the log, so that a letter about it says the same again.
        original = Record(self._topics.transitions, letter.partition, letter.offset, record.key, letter.value)
        redrives = letter.redrives + 1
        try:
            event = decode_transition(letter.value)
        except (Undecodable, UnknownVersion) as error:
            return await self._deliveries.reject(original, str(error), stop, redrives=redrives)
        if event is None:
            error_text = "its type is not known to this release"
            return await self._deliveries.reject(original, error_text, stop, redrives=redrives)
        return await self._deliveries.deliver(
            event,
            original,
            stop,
            find_job=lambda: find_job(self._log, self._topics, event, letter.partition, letter.offset),
            redrives=redrives,
            is_redrive=True,
        )
