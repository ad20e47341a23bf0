"""Commands in the wrong partition are sent on, once (contract section 1)."""

from __future__ import annotations

import json

import pytest
from tests.core.playing import claim, enqueue, heartbeat, lease
from tests.engine.house import ME, TOPICS, House

from tidelog.log.port import MAX_RECORD_BYTES, NewRecord
from tidelog_events.identity import partition_of
from tidelog_events.wire import WireObject


def home_of(queue: str) -> int:
    return partition_of(queue, 4)


@pytest.mark.parametrize("offset", [1, 2, 3])
async def test_a_command_is_decided_at_home_wherever_it_was_sent(wide_house: House, offset: int) -> None:
    home = home_of("billing")
    async with wide_house.running():
        await wide_house.send(enqueue("billing/a", command_id="1"), partition=(home + offset) % 4)
        reply = await wide_house.reply("1")
    assert (reply["result"], reply["partition"]) == ("Ok", home)
    assert await wide_house.steps(home) == ["enqueued billing/a"]
    assert await wide_house.rejects() == []


async def test_rows_are_sent_on_together(wide_house: House) -> None:
    home = home_of("billing")
    async with wide_house.running():
        beat = heartbeat("w", lease("billing/a"), lease("billing/b"), command_id="1")
        await wide_house.send(beat, partition=(home + 1) % 4)
        assert len((await wide_house.reply("1"))["leases"]) == 2


async def test_rows_that_live_apart_are_refused_where_they_are(wide_house: House) -> None:
    queues = [f"queue-{number}" for number in range(8)]
    async with wide_house.running():
        await wide_house.send(heartbeat("w", *(lease(f"{queue}/a") for queue in queues), command_id="1"))
        reply = await wide_house.reply("1")
    assert (reply["result"], reply["field"]) == ("Invalid", "leases")


async def test_a_second_misroute_is_a_reject(wide_house: House) -> None:
    home = home_of("billing")
    astray = (home + 1) % 4
    value = json.dumps({**enqueue("billing/a", command_id="1"), "reply_to": ME}).encode()
    async with wide_house.running():
        await wide_house.put(NewRecord(TOPICS.links, astray, b"billing", value))
        (record,) = await wide_house.until_rejects(1)
    assert (record.key, record.value) == (b"billing", value)
    headers = dict(record.headers)
    assert (headers["topic"], headers["partition"]) == (TOPICS.links.encode(), str(astray).encode())
    assert f"partition {home}".encode() in headers["reason"]
    assert await wide_house.steps(home) == []


def command_of(size: int, **fields: object) -> bytes:
    """A command for `billing` of so many bytes."""
    command: WireObject = {**enqueue("billing/a", command_id="1", payload=""), "reply_to": ME, **fields}
    command["payload"] = "x" * (size - len(json.dumps(command)))
    return json.dumps(command).encode()


@pytest.mark.parametrize("key", [None, b"billing"])
async def test_one_at_the_bound_of_the_log_is_sent_on_too(wide_house: House, key: bytes | None) -> None:
    home = home_of("billing")
    value = command_of(MAX_RECORD_BYTES - len(key or b""))
    async with wide_house.running() as engine:
        await wide_house.put(NewRecord(TOPICS.commands, (home + 1) % 4, key, value))
        reply = await wide_house.reply("1")
        assert (reply["result"], reply["partition"]) == ("PayloadTooLarge", home)
        assert engine.counters.failures == 0
        assert (await wide_house.ask(claim("billing", "w", command_id="2")))["result"] == "Ok"
