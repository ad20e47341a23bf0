"""Other people's consumer groups read the log: each event once, in order, without a gap."""

from __future__ import annotations

import json
from collections import defaultdict
from uuid import uuid4

import pytest
from tests.integration import console
from tests.integration.outsider import Commander, Event, Events, Inbox, schema
from tests.integration.site import Site

LIVES = {
    "audio/greeted": ["enqueued", "leased", "succeeded"],
    "billing/retried": ["enqueued", "leased", "retry_scheduled", "leased", "succeeded"],
    "images/cancelled": ["enqueued", "cancelled"],
}
"""What happens to three jobs, by the queue and the beginning of the key."""


@pytest.fixture
def lives(commander: Commander, inbox: Inbox) -> dict[str, list[str]]:
    """Three jobs that have been sent on their ways: what is to happen to each."""
    lives = {f"{name}-{uuid4().hex}": life for name, life in LIVES.items()}
    greeted, retried, cancelled = lives
    ask(commander, inbox, "audio", type="enqueue", job_id=greeted, wire_name="greet", payload={"name": "ann"})
    again = {"retry": {"max_attempts": 3, "delays": [0]}}
    ask(commander, inbox, "billing", type="enqueue", job_id=retried, wire_name="flaky", **again)
    later = {"due_time": "2100-01-01T00:00:00Z"}
    ask(commander, inbox, "images", type="enqueue", job_id=cancelled, wire_name="greet", **later)
    ask(commander, inbox, "images", type="cancel", job_id=cancelled, actor="ann")
    return lives


def ask(commander: Commander, inbox: Inbox, queue: str, **command: object) -> None:
    """Send a command, and wait until it is decided."""
    command_id = uuid4().hex
    commander.send({**command, "command_id": command_id, "reply_to": inbox.client_id}, key=queue)
    inbox.reply(command_id)


def types_of(events: list[Event], job_id: str) -> list[str]:
    return [event["type"] for event in events if event.get("job_id") == job_id]


def key_of(event: Event) -> str:
    """The key of its record: the job, else the schedule, else the queue (contract section 2)."""
    if event["type"].startswith("schedule_"):
        return str(event.get("schedule_id"))
    return event.get("job_id", event["queue"])


def read_lives(events: Events, lives: dict[str, list[str]]) -> None:
    for job_id, life in lives.items():
        events.until_type(job_id, life[-1])
    events.to_the_end()


def test_a_group_sees_each_event_once_and_in_order(events: Events, lives: dict[str, list[str]]) -> None:
    read_lives(events, lives)
    assert {job_id: types_of(events.all(), job_id) for job_id in lives} == lives
    sequences: dict[int, list[int]] = defaultdict(list)
    for record, event in zip(events.records, events.all(), strict=True):
        assert event["partition"] == record.partition()
        assert record.key() == key_of(event).encode()
        sequences[event["partition"]].append(event["sequence"])
    assert sequences == {partition: list(range(len(found))) for partition, found in sequences.items()}
    for job_id in lives:
        found = events.of(job_id)
        assert [event["ordinal"] for event in found] == list(range(len(found)))


def test_events_are_as_the_published_schema_says(events: Events, lives: dict[str, list[str]]) -> None:
    read_lives(events, lives)
    published = schema("transitions")
    for event in events.all():
        published.validate(event)


def test_a_group_goes_on_where_it_stopped(
    site: Site, events: Events, lives: dict[str, list[str]], commander: Commander, inbox: Inbox
) -> None:
    read_lives(events, lives)
    events.commit()
    events.close()
    before = {(event["partition"], event["sequence"]) for event in events.all()}
    job_id = f"audio/{uuid4().hex}"
    ask(commander, inbox, "audio", type="enqueue", job_id=job_id, wire_name="greet", payload={"name": "bob"})
    with Events(site.brokers, site.prefix, events.group) as resumed:
        resumed.until_type(job_id, "succeeded")
        resumed.to_the_end()
        after = {(event["partition"], event["sequence"]) for event in resumed.all()}
        assert types_of(resumed.all(), job_id) == ["enqueued", "leased", "succeeded"]
    assert not before & after


def test_the_console_consumer_sees_the_same(site: Site, events: Events, lives: dict[str, list[str]]) -> None:
    read_lives(events, lives)
    expected = defaultdict(list)
    for record in events.records:
        expected[record.partition()].append((record.key(), record.value()))
    missing = len(events.records)
    printed: dict[int | None, list[tuple[bytes, bytes]]] = defaultdict(list)
    with console.consuming(site.brokers, site.topic("transitions"), f"console-{uuid4().hex}") as lines:
        for line in lines:
            printed[line.partition].append((line.key.encode(), line.value.encode()))
            missing -= 1
            if missing == 0:
                break
    assert printed == expected


def test_replies_carry_what_is_needed_to_await_the_projection(
    commander: Commander, inbox: Inbox, events: Events
) -> None:
    command_id, job_id = uuid4().hex, f"audio/{uuid4().hex}"
    command = {"type": "enqueue", "job_id": job_id, "wire_name": "greet", "due_time": "2100-01-01T00:00:00Z"}
    commander.send({**command, "command_id": command_id, "reply_to": inbox.client_id}, key="audio")
    reply = inbox.reply(command_id)
    born = events.until_type(job_id, "enqueued")
    assert (reply["partition"], reply["sequence"]) == (born["partition"], born["sequence"])
    (record,) = [record for record in inbox.records if json.loads(record.value() or b"") == reply]
    assert record.key() == inbox.client_id.encode()
