"""Members of a group in processes that are killed, or whose event loops hang."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.conformance.cluster import SECONDS, until
from tests.log.conftest import Start

from tidelog.log.port import TopicSpec
from tidelog.log.sqlite import SqliteLog
from tidelog.log.sqlite.groups import MEMBER_SECONDS


async def test_the_share_of_a_killed_member_moves(log: SqliteLog, start: Start) -> None:
    child = await start("member")
    assert await child.line() == "joined"
    member = await log.join("group", "events")
    await until(lambda: len(member.assignment) == 1, member)
    await child.kill()
    await until(lambda: member.assignment == {0, 1}, member)


async def test_a_member_with_a_blocked_event_loop_keeps_its_share(log: SqliteLog, start: Start) -> None:
    child = await start("frozen-member")
    assert await child.line() == "joined"
    member = await log.join("group", "events")
    await until(lambda: len(member.assignment) == 1, member)
    assert await member.changed(timeout=0) in {True, False}
    assert not await member.changed(timeout=2 * MEMBER_SECONDS)
    assert len(member.assignment) == 1


async def test_a_member_that_was_taken_for_dead_is_one_of_the_forgotten_group_again(tmp_path: Path) -> None:
    """Never of another group that came meanwhile."""
    path = tmp_path / "log.db"
    async with (
        await SqliteLog.open(path) as hanging,
        await SqliteLog.open(path, clock=lambda: time.time() + 60) as other,
    ):
        await hanging.create_topics([TopicSpec("events", 1)])
        member = await hanging.join("group", "events")
        await member.commit({0: 3}, timeout=SECONDS)
        await other.forget_group("group")
        assert await member.committed(0) is None
        stranger = await other.join("another", "events")
        await stranger.commit({0: 5}, timeout=SECONDS)

        async with asyncio.timeout(SECONDS):
            while await member.committed(0) is None:  # until its next heartbeat nothing is its
                await member.commit({0: 4}, timeout=SECONDS)
        assert await stranger.committed(0) == 5
        assert [group.name for group in await hanging.groups("")] == ["another", "group"]
