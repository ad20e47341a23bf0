"""What is no command: where it goes, and that the partition goes on (contract section 2, rejects)."""

from __future__ import annotations

import json

import pytest
from tests.core.playing import claim, enqueue
from tests.engine.house import ME, TOPICS, House

from tidelog.log.port import MAX_RECORD_BYTES, NewRecord


def raw(value: bytes | None, key: bytes | None = b"key") -> NewRecord:
    return NewRecord(TOPICS.commands, 0, key, value)


NO_COMMANDS = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b'"enqueue"',
    b"NaN",
    b'{"type": "enqueue", "wire_name": 1e999}',
    b"[" * 100_000,
    b'{"type": "enqueue"}',
    b'{"type": "enqueue", "wire_name": "w", "reply_to": ""}',
    b'{"type": "enqueue", "wire_name": 7, "reply_to": 7}',
    b'{"type": "nothing"}',
    b'{"\\ud800": 1}',
]


@pytest.mark.parametrize("value", NO_COMMANDS)
async def test_it_is_kept_with_its_bytes_and_where_it_stood(house: House, value: bytes) -> None:
    async with house.running():
        await house.put(raw(b'{"type": "claim", "queue": "q", "worker_id": "w"}'), raw(value))
        assert (await house.ask(enqueue("q/a", command_id="1")))["result"] == "Ok"
        (record,) = await house.until_rejects(1)
    assert (record.key, record.value) == (b"key", value)
    headers = dict(record.headers)
    assert headers.pop("reason")
    assert headers == {"topic": TOPICS.commands.encode(), "partition": b"0", "offset": b"1"}
    assert await house.steps() == ["enqueued q/a"]


async def test_an_invalid_command_with_a_reader_is_answered_instead(house: House) -> None:
    async with house.running():
        reply = await house.ask({"type": "claim", "queue": "q", "command_id": "1"})
        assert (reply["result"], reply["field"]) == ("Invalid", "worker_id")
    assert await house.rejects() == []


async def test_a_record_without_a_value_is_rejected(house: House) -> None:
    async with house.running():
        await house.put(raw(None, None))
        (record,) = await house.until_rejects(1)
    assert (record.key, record.value) == (None, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"key", b"x" * (MAX_RECORD_BYTES - 3)),
        (b"key", b"[" * (MAX_RECORD_BYTES - 3)),
        (None, json.dumps({"x" * (MAX_RECORD_BYTES - 20): 1}).encode()),
        (b"k" * (MAX_RECORD_BYTES - 500), b"x" * 500),
        (b"k" * MAX_RECORD_BYTES, b""),
        (b"k" * MAX_RECORD_BYTES, None),
    ],
)
async def test_one_at_the_bound_of_the_log_does_not_stop_the_partition(
    house: House, key: bytes | None, value: bytes | None
) -> None:
    async with house.running() as engine:
        await house.put(raw(value, key))
        assert (await house.ask(claim("q", "w", command_id="1")))["result"] == "Ok"
        (record,) = await house.until_rejects(1)
        assert engine.counters.failures == 0
    assert (key or b"").startswith(record.key or b"")
    assert (value or b"").startswith(record.value or b"")
    if record.value != value:
        assert dict(record.headers)["truncated-from"] == str(len(value or b"")).encode()


async def test_a_command_at_the_bound_of_the_log_is_answered(house: House) -> None:
    command = {**enqueue("q/a", command_id="1", payload=""), "reply_to": ME}
    command["payload"] = "x" * (MAX_RECORD_BYTES - len(json.dumps(command)))
    async with house.running():
        await house.put(raw(json.dumps(command).encode(), None))
        assert (await house.reply("1"))["result"] == "PayloadTooLarge"
