"""Other people's producers enqueue by JSON and the queue's name as key, wherever their partitioner aims."""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import uuid4

import pytest
from tests.integration import console
from tests.integration.outsider import Commander, Events, Feed, Inbox, Json
from tests.integration.site import PARTITIONS, QUEUES, Site

CODECS = ("gzip", "snappy", "lz4", "zstd")
"""All that Kafka has."""


def new_key() -> str:
    return uuid4().hex


def greeting(queue: str, key: str, inbox: Inbox, command_id: str | None = None) -> Json:
    """A job that the installation's worker runs."""
    return {
        "type": "enqueue",
        "job_id": f"{queue}/{key}",
        "wire_name": "greet",
        "payload": {"name": key},
        "command_id": command_id or key,
        "reply_to": inbox.client_id,
    }


def home_of(queue: str, commander: Commander, inbox: Inbox) -> int:
    """The partition of a queue, from the answer to a question about it."""
    command_id = new_key()
    asked = {"type": "cancel", "job_id": f"{queue}/{new_key()}", "command_id": command_id}
    commander.send({**asked, "reply_to": inbox.client_id}, key=queue)
    return inbox.reply(command_id)["partition"]


def assert_ran_once(events: Events, homes: Mapping[str, int]) -> None:
    """The whole life of each job: each step once, in the job's own partition, in order."""
    for job_id in homes:
        events.until_type(job_id, "succeeded")
    events.to_the_end()
    for job_id, home in homes.items():
        life = events.of(job_id)
        assert [event["type"] for event in life] == ["enqueued", "leased", "succeeded"]
        assert [event["ordinal"] for event in life] == [0, 1, 2]
        assert {event["partition"] for event in life} == {home}
        assert life[-1]["output"] == f"hello {job_id.partition('/')[2]}"


def homes_of(keys: Mapping[str, str], inbox: Inbox) -> dict[str, int]:
    """Where the greetings were decided, by queue: each must have been accepted."""
    replies = {queue: inbox.reply(key) for queue, key in keys.items()}
    for queue, reply in replies.items():
        accepted = (reply["type"], reply.get("result"), reply.get("job_id"))
        assert accepted == ("enqueue", "Ok", f"{queue}/{keys[queue]}")
    return {queue: reply["partition"] for queue, reply in replies.items()}


def test_kafkas_own_partitioner_hits_the_right_partition(
    commander: Commander, inbox: Inbox, events: Events
) -> None:
    keys = {queue: new_key() for queue in QUEUES}
    landed = {queue: commander.send(greeting(queue, key, inbox), key=queue) for queue, key in keys.items()}
    assert homes_of(keys, inbox) == landed
    assert_ran_once(events, {f"{queue}/{key}": landed[queue] for queue, key in keys.items()})


def test_what_another_partitioner_misplaces_is_sent_on(site: Site, inbox: Inbox, events: Events) -> None:
    """librdkafka's own default, which is a CRC32."""
    keys = {queue: new_key() for queue in QUEUES}
    with Commander(site.brokers, site.prefix) as commander:
        landed = {queue: commander.send(greeting(queue, keys[queue], inbox), key=queue) for queue in QUEUES}
    homes = homes_of(keys, inbox)
    assert landed != homes, "the partitioners agree about these queues: nothing is shown"
    assert_ran_once(events, {f"{queue}/{key}": homes[queue] for queue, key in keys.items()})


def test_commands_may_be_compressed_in_any_way(site: Site, inbox: Inbox, events: Events) -> None:
    """One that an engine could not read would hold up its partition for ever."""
    keys = {queue: f"{new_key()}-{'z' * 60}" for queue in QUEUES[: len(CODECS)]}  # worth compressing
    for (queue, key), codec in zip(keys.items(), CODECS, strict=True):
        with Commander(site.brokers, site.prefix, **{"compression.type": codec}) as commander:
            commander.send(greeting(queue, key, inbox), key=queue)
    homes = homes_of(keys, inbox)
    assert_ran_once(events, {f"{queue}/{key}": homes[queue] for queue, key in keys.items()})


@pytest.mark.parametrize("distance", range(1, PARTITIONS))
def test_a_partition_that_is_plainly_wrong_ends_right(
    commander: Commander, inbox: Inbox, events: Events, distance: int
) -> None:
    home, key = home_of("billing", commander, inbox), new_key()
    wrong = (home + distance) % PARTITIONS
    assert commander.send(greeting("billing", key, inbox), key="billing", partition=wrong) == wrong
    assert homes_of({"billing": key}, inbox) == {"billing": home}
    assert_ran_once(events, {f"billing/{key}": home})


def test_one_job_sent_to_every_partition_is_one_job(
    commander: Commander, inbox: Inbox, events: Events
) -> None:
    home, key = home_of("mail", commander, inbox), new_key()
    for partition in range(PARTITIONS):
        commander.send(greeting("mail", key, inbox, f"{key}-{partition}"), key="mail", partition=partition)
    replies = [inbox.reply(f"{key}-{partition}") for partition in range(PARTITIONS)]
    assert sorted(str(reply.get("result")) for reply in replies) == ["Duplicate"] * (PARTITIONS - 1) + ["Ok"]
    assert {reply.get("job_id") for reply in replies} == {f"mail/{key}"}
    assert_ran_once(events, {f"mail/{key}": home})


def test_the_console_producer_enqueues(site: Site, inbox: Inbox, events: Events) -> None:
    keys = {queue: new_key() for queue in QUEUES}
    lines = {queue: json.dumps(greeting(queue, key, inbox)) for queue, key in keys.items()}
    console.produce(site.brokers, site.topic("commands"), lines)
    homes = homes_of(keys, inbox)
    assert_ran_once(events, {f"{queue}/{key}": homes[queue] for queue, key in keys.items()})
    with Feed(site.brokers, site.topic("commands")) as commands:
        commands.until(
            lambda: {line.encode() for line in lines.values()} <= {r.value() for r in commands.records}
        )
        landed = {
            (record.key() or b"").decode(): record.partition()
            for record in commands.records
            if (record.value() or b"").decode() in lines.values()
        }
    assert landed == homes


def test_a_job_without_a_key_of_its_own_gets_one(commander: Commander, inbox: Inbox, events: Events) -> None:
    retry = {"max_attempts": 3, "delays": [0]}
    command = {"type": "enqueue", "queue": "orders", "wire_name": "flaky", "retry": retry}
    command_id = new_key()
    commander.send({**command, "command_id": command_id, "reply_to": inbox.client_id}, key="orders")
    job_id = inbox.reply(command_id).get("job_id", "")
    assert job_id.startswith("orders/")
    events.until_type(job_id, "succeeded")
    assert [event["type"] for event in events.of(job_id)] == [
        "enqueued",
        "leased",
        "retry_scheduled",
        "leased",
        "succeeded",
    ]


def test_a_wrong_command_is_answered_with_the_field(commander: Commander, inbox: Inbox) -> None:
    command_id = new_key()
    wrong = {"type": "enqueue", "wire_name": "greet", "prio": 1, "command_id": command_id}
    commander.send({**wrong, "reply_to": inbox.client_id}, key="default")
    reply = inbox.reply(command_id)
    assert (reply["type"], reply.get("result"), reply.get("field")) == ("enqueue", "Invalid", "prio")


def test_what_is_no_json_is_kept_with_its_bytes(site: Site, commander: Commander) -> None:
    value = b"{no json " + new_key().encode()
    partition = commander.send_bytes(value, key="video")
    with Feed(site.brokers, site.topic("rejects")) as rejects:
        rejects.until(lambda: any(record.value() == value for record in rejects.records))
        (found,) = [record for record in rejects.records if record.value() == value]
    headers = dict(found.headers() or ())
    assert found.key() == b"video"
    assert headers.keys() == {"reason", "topic", "partition", "offset"}
    assert (headers["topic"], headers["partition"]) == (
        site.topic("commands").encode(),
        str(partition).encode(),
    )
