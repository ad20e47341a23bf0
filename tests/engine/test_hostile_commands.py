"""Whatever stands in the log of commands: the partition goes on, and no record is too large to be written."""

from __future__ import annotations

import json

import pytest
from tests.conformance.cluster import Cluster
from tests.core.playing import claim, enqueue, heartbeat, lease, report, success
from tests.engine.house import ME, TOPICS, House, eventually

import tidelog.log.memory.store
from tidelog.log.port import MAX_RECORD_BYTES, NewRecord
from tidelog_events.wire import WireObject

DEEP = "@deep@"

HOSTILE: list[WireObject] = [
    enqueue("q/deep", payload=DEEP),
    {"type": "enqueue", "wire_name": DEEP},
    enqueue("q/surrogate", payload={"\ud800": ["\udfff"]}),
    enqueue("q/surrogate", tags=[{"\ud800": "\ud800"}]),
    {**enqueue("q/a"), "\ud800": 1},
    {"type": "\ud800"},
    {"type": ["enqueue"]},
    enqueue("q/huge", payload=10**4_000),
    heartbeat("w", lease("q/none", 10**4_000, lease=-(10**4_000))),
    heartbeat("w", *[lease("q/none")] * 25_000),
    report("w", *[success("q/none")] * 15_000),
    report("w", *[{}] * 300_000),
    enqueue("q/parents", parents=[f"q/{number}" for number in range(100_000)]),
    enqueue("q/parents", parents=[0] * 450_000),
    enqueue("q/tags", tags=["😀" * 200] * 300),
    enqueue("q/tags", tags=["😀" * 201]),
    enqueue("q/large", payload="x" * 900_000),
    enqueue("q/name", wire_name="w" * 900_000),
    claim("q", "w" * 201),
    claim("q", "w", max_jobs=10**600, lease_seconds=10**600),
    {"x" * 900_000: None, "type": "claim"},
    {"type": "x" * 900_000},
    {"type": "claim", "command_id": {"a": 1}},
]


def written(command: WireObject) -> bytes:
    text = json.dumps({"reply_to": ME, **command}, separators=(",", ":"))
    return text.replace(f'"{DEEP}"', "[" * 100_000 + "]" * 100_000).encode()


@pytest.mark.timeout(120)
async def test_every_command_is_answered_and_the_partition_goes_on(house: House) -> None:
    commands = [{"command_id": f"hostile-{number}", **command} for number, command in enumerate(HOSTILE)]
    async with house.running() as engine:
        await house.put(*(NewRecord(TOPICS.commands, 0, b"q", written(command)) for command in commands))
        assert (await house.ask(enqueue("q/after", command_id="after")))["result"] == "Ok"
        assert (engine.counters.failures, engine.counters.takeovers) == (0, 1)
    answers = [reply for reply in await house.replies() if reply["type"] != "hello"]
    answered = {reply["command_id"] for reply in answers}
    assert answered >= {
        command["command_id"] for command in commands if isinstance(command["command_id"], str)
    }
    assert await house.rejects() == []


async def test_what_another_producer_wrote_over_the_bound_is_rejected(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker's own bound may be wider than that of the port."""
    async with house.running() as engine:
        with monkeypatch.context() as patch:
            patch.setattr(tidelog.log.memory.store, "refuse_oversized", lambda _: None)
            patch.setattr("tidelog.log.sqlite.append.refuse_oversized", lambda _: None)
            await house.put(NewRecord(TOPICS.commands, 0, b"key", b"x" * (MAX_RECORD_BYTES + 40_000)))
        (record,) = await house.until_rejects(1)
        assert (await house.ask(enqueue("q/after", command_id="after")))["result"] == "Ok"
        assert engine.counters.failures == 0
    assert len(record.value or b"") < MAX_RECORD_BYTES


async def test_an_oversized_command_for_another_partition_is_rejected(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = await House.build(cluster, partitions=4)
    command = {**enqueue("q/a", payload="x" * MAX_RECORD_BYTES, command_id="1"), "reply_to": ME}
    async with house.running() as engine:
        with monkeypatch.context() as patch:
            patch.setattr(tidelog.log.memory.store, "refuse_oversized", lambda _: None)
            patch.setattr("tidelog.log.sqlite.append.refuse_oversized", lambda _: None)
            await house.put(
                *(
                    NewRecord(TOPICS.commands, number, b"q", json.dumps(command).encode())
                    for number in range(4)
                )
            )
        assert len(await house.until_rejects(3)) == 3
        assert (await house.reply("1"))["result"] == "PayloadTooLarge"
        assert engine.counters.failures == 0


async def test_many_workers_may_wait(house: House) -> None:
    async with house.running() as engine:
        workers = [f"w{number}" for number in range(500)]
        await house.send_all([claim("q", w, wait_seconds=1_000_000_000, command_id=w) for w in workers])
        await house.send_all([enqueue(f"q/{number}", command_id=f"e{number}") for number in range(500)])
        for worker in workers:
            assert len((await house.reply(worker))["jobs"]) == 1
        await eventually(lambda: engine.counters.failures == 0)
