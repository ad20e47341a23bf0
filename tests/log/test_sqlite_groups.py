"""Members of a group in processes that are killed, or whose event loops hang."""

from __future__ import annotations

from tests.conformance.cluster import until
from tests.log.conftest import Start

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
