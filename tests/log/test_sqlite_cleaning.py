"""The file stays small: what is superseded or expired gives its room to what comes."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.cluster import WallClock, append, fold, read_to_end, record

from tidelog.log.cleaning import TOMBSTONE_SECONDS
from tidelog.log.port import Cleanup, TopicSpec
from tidelog.log.sqlite import SqliteLog


async def test_a_compacted_topic_holds_one_record_for_each_key(tmp_path: Path) -> None:
    async with await SqliteLog.open(tmp_path / "log.db") as log:
        await log.create_topics([TopicSpec("state", 1, Cleanup.COMPACT)])
        for value in range(3):
            await append(
                log, *(record("state", str(value), key=f"key-{number % 700}") for number in range(2_500))
            )
            await log.clean()
            found = await read_to_end(log, "state")
            assert len(found) == len(fold(found)) == 700


async def test_a_tombstone_is_forgotten_in_the_end(tmp_path: Path) -> None:
    clock = WallClock()
    async with await SqliteLog.open(tmp_path / "log.db", clock=clock) as log:
        await log.create_topics([TopicSpec("state", 1, Cleanup.COMPACT)])
        await append(log, *(record("state", "x", key=f"key-{number}") for number in range(1_500)))
        await append(log, *(record("state", None, key=f"key-{number}") for number in range(1_400)))
        await log.clean()
        assert len(await read_to_end(log, "state")) == 1_500

        clock.advance(TOMBSTONE_SECONDS + 1)
        await append(log, record("state", None, key="key-1499"))
        await log.clean()
        found = await read_to_end(log, "state")
        assert len(found) == 100
        assert len(fold(found)) == 99


async def test_the_room_of_expired_records_is_used_again(tmp_path: Path) -> None:
    clock = WallClock()
    path = tmp_path / "log.db"
    sizes: list[int] = []
    for _ in range(4):
        async with await SqliteLog.open(path, clock=clock) as log:
            await log.create_topics([TopicSpec("events", 1, retention_seconds=60)])
            await append(log, *(record("events", "x" * 1_000) for _ in range(2_500)))
            clock.advance(61)
            await log.clean()
        sizes.append(path.stat().st_size)
    assert sizes[-1] < 1.5 * sizes[0]
