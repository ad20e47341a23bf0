"""`kill -9` at any instant: what was acknowledged is there, and nothing is there in part."""

from __future__ import annotations

import asyncio

import pytest
from tests.conformance.cluster import read_to_end
from tests.log.conftest import Child, Start

from tidelog.log.sqlite import SqliteLog


async def keys(log: SqliteLog, topic: str, partition: int) -> list[str]:
    return [(record.key or b"").decode() for record in await read_to_end(log, topic, partition)]


@pytest.mark.parametrize("lines", [1, 37, 150])
async def test_no_acknowledged_transaction_is_lost_and_none_is_in_part(
    log: SqliteLog, start: Start, lines: int
) -> None:
    children = [await start("append", name) for name in ("a", "b")]

    async def kill_in_mid_work(child: Child) -> list[str]:
        acknowledged = [await child.line() for _ in range(lines)]
        await child.kill()
        return acknowledged + await child.lines_left()

    for acknowledged in await asyncio.gather(*(kill_in_mid_work(child) for child in children)):
        name = acknowledged[0][0]
        once = [key for key in await keys(log, "events", 0) if key.startswith(name)]
        # The last one may have been killed between its commit and its answer.
        assert once in (acknowledged, [*acknowledged, f"{name}-{len(acknowledged)}"])
        assert [key for key in await keys(log, "state", 0) if key.startswith(name)] == once
        twice = [key for key in await keys(log, "events", 1) if key.startswith(name)]
        assert twice == [key for key in once for _ in range(2)]


async def test_the_successor_of_a_killed_writer_goes_on_at_once(log: SqliteLog, start: Start) -> None:
    first = await start("append", "a")
    await first.line()
    await first.kill()
    left = await first.lines_left()
    second = await start("append", "a")
    assert await second.line() == "a-0"
    assert (await keys(log, "events", 0)).count("a-0") == 2
    assert len(await keys(log, "events", 0)) >= len(left) + 2


async def test_a_full_disk_is_reported_and_survived(log: SqliteLog, start: Start) -> None:
    child = await start("fill")
    count, error = (await child.line()).split()
    assert error in {"LogUnavailable", "OutcomeUnknown"}
    assert await child.line() == "recovered"

    found = await read_to_end(log, "events")
    assert len(found) in {int(count) + 1, int(count) + 2}
    assert found[-1].value == b"after"
