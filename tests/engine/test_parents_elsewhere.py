"""A parent in another partition, over the log: links, answers and ends go in the engines' transactions."""

from __future__ import annotations

from tests.core.playing import cancel, enqueue
from tests.engine.house import House

from tidelog_events.identity import partition_of

PARENT, CHILD = "a/parent", "billing/child"
PARENT_HOME, CHILD_HOME = partition_of("a", 4), partition_of("billing", 4)


async def test_a_child_is_born_below_its_parent_and_falls_with_it_over_a_restart(wide_house: House) -> None:
    assert PARENT_HOME != CHILD_HOME
    async with wide_house.running():
        # Both at once: the link may come before the parent's own command is handled.
        await wide_house.send(enqueue(PARENT, command_id="parent"))
        await wide_house.send(enqueue(CHILD, parents=[PARENT], command_id="child"))
        assert (await wide_house.reply("child"))["result"] == "Ok"
    async with wide_house.running():
        await wide_house.send(cancel(PARENT, command_id="cancel"))
        assert (await wide_house.reply("cancel"))["result"] == "CancelledImmediately"
        await wide_house.until_step(f"cancelled {CHILD}", CHILD_HOME)
    assert await wide_house.steps(CHILD_HOME) == [f"enqueued {CHILD}", f"cancelled {CHILD}"]


async def test_an_unknown_parent_elsewhere_is_refused(wide_house: House) -> None:
    async with wide_house.running():
        await wide_house.send(enqueue(CHILD, parents=["a/nobody"], command_id="child"))
        assert (await wide_house.reply("child"))["result"] == "UnknownParent"
    assert await wide_house.steps(CHILD_HOME) == []
