"""The waiting half of a reader and of a member, for adapters that can raise a signal at a change."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping

from tidelog.log.port import LogError, Member, OffsetOutOfRange, Reader, Record, TopicPartition


async def wait_for_signal(signal: asyncio.Event, timeout: float) -> bool:
    """Wait until the signal is raised (True) or `timeout` seconds have passed (False)."""
    try:
        async with asyncio.timeout(timeout):
            await signal.wait()
    except TimeoutError:
        return False
    return True


class SignalledReader(Reader):
    """A reader that takes what is there, and waits for `self._signal` when there is nothing.

    `_positions` are those of the partitions that are read; the paused ones stand aside.
    """

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._positions = dict(offsets)
        self._paused: dict[TopicPartition, int] = {}
        self._signal = asyncio.Event()

    @abstractmethod
    def _take(self, max_records: int) -> list[Record]:
        """Take what is there now and move the positions past it; empty when there is nothing."""

    async def read(self, *, max_records: int, timeout: float) -> list[Record]:
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {max_records}")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            # A reader with a long backlog would otherwise never let go of the loop. It is also where a
            # cancellation lands: before the positions move, so that it loses nothing.
            await asyncio.sleep(0)
            # Cleared before looking: what comes after the look raises it again.
            self._signal.clear()
            records = self._take(max_records)
            if records:
                return records
            remaining = deadline - loop.time()
            if remaining <= 0 or not await wait_for_signal(self._signal, remaining):
                return []

    def position(self, tp: TopicPartition) -> int:
        self._refuse_stranger(tp)
        return self._paused[tp] if tp in self._paused else self._positions[tp]

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._refuse_stranger(tp)
        if tp in self._paused:
            self._paused[tp] = offset
            return
        self._positions[tp] = offset
        self._signal.set()

    def pause(self, tp: TopicPartition) -> None:
        self._refuse_stranger(tp)
        if tp not in self._paused:
            self._paused[tp] = self._positions.pop(tp)

    def resume(self, tp: TopicPartition) -> None:
        self._refuse_stranger(tp)
        if tp in self._paused:
            self._positions[tp] = self._paused.pop(tp)
            self._signal.set()

    def _ask_last(self, tp: TopicPartition) -> None:
        """The partition that was served last is asked last next time, so that none starves the others."""
        self._positions[tp] = self._positions.pop(tp)

    def _refuse_stranger(self, tp: TopicPartition) -> None:
        if tp not in self._positions and tp not in self._paused:
            raise LogError(f"This reader was not opened for {tp.topic}[{tp.partition}].")


def out_of_range(tp: TopicPartition, offset: int, start: int, end: int) -> OffsetOutOfRange:
    """The refusal of an offset that is not in the log."""
    return OffsetOutOfRange(
        f"The offset {offset} of {tp.topic}[{tp.partition}] is not in the log, which holds {start} to {end}."
        " Below, it was trimmed by the topic's retention; above, it is of another log or a restored copy."
    )


class SignalledMember(Member):
    """A member that looks for its share when `self._signal` is raised, and says when it has changed."""

    def __init__(self) -> None:
        self._assignment: frozenset[int] = frozenset()
        self._signal = asyncio.Event()
        self._changes = 0
        self._reported = 0

    @abstractmethod
    def _share(self) -> frozenset[int]:
        """The partitions that are this member's now."""

    @property
    def assignment(self) -> frozenset[int]:
        return self._assignment

    async def changed(self, *, timeout: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            self._signal.clear()
            self._refresh()
            if self._changes != self._reported:
                self._reported = self._changes
                return True
            if not await wait_for_signal(self._signal, max(0.0, deadline - loop.time())):
                return False

    def _refresh(self) -> None:
        """Look for the share. The first one counts as a change, an empty one included."""
        share = self._share()
        if not self._changes or share != self._assignment:
            self._assignment = share
            self._changes += 1
