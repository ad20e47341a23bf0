"""Programs of somebody else: librdkafka, JSON, and of Tidelog what docs/contract.md says.

Nothing of Tidelog is imported here, so that whatever works here works from any language.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NotRequired, Self, TypedDict
from uuid import uuid4

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from jsonschema import Draft202012Validator, FormatChecker

SECONDS = 60.0
"""The bound of every wait here: far beyond what any of them takes, start of the roles included."""

_POLL_SECONDS: Final = 0.1
_SCHEMAS: Final = Path(__file__).parents[2] / "docs" / "schemas"

Json = Mapping[str, object]


def schema(name: str) -> Draft202012Validator:
    """A published schema, by the name of its file."""
    return Draft202012Validator(
        json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8")), format_checker=FormatChecker()
    )


class Grant(TypedDict):
    """What a worker needs of a granted job."""

    job_id: str
    queue: str
    payload: object
    attempt: int
    lease: int
    cancel_requested: bool


class Reply(TypedDict):
    """A reply, with the fields of all types that are read here."""

    command_id: str | None
    type: str
    result: NotRequired[str]
    partition: int
    sequence: int
    job_id: NotRequired[str]
    jobs: NotRequired[list[Grant]]
    results: NotRequired[list[str]]
    leases: NotRequired[list[dict[str, object]]]
    field: NotRequired[str]
    lease: NotRequired[int]


class Event(TypedDict):
    """A transition, with the fields of all types that are read here."""

    type: str
    partition: int
    sequence: int
    queue: str
    job_id: NotRequired[str]
    ordinal: NotRequired[int]
    state: NotRequired[str]
    attempt: NotRequired[int]
    output: NotRequired[object]
    worker_id: NotRequired[str]
    schedule_id: NotRequired[str | None]
    cron: NotRequired[str]
    actor: NotRequired[str]


class Commander:
    """Sends commands.

    Args:
        options: of librdkafka, such as the partitioner.
    """

    def __init__(self, brokers: str, prefix: str, **options: str) -> None:
        self._producer = Producer({"bootstrap.servers": brokers, "acks": "all", **options})
        self._topic = f"{prefix}.commands"

    def send(self, command: Json, *, key: str, partition: int | None = None) -> int:
        """Send a command, and return the partition in which the log has it."""
        return self.send_bytes(json.dumps(command).encode(), key=key, partition=partition)

    def send_bytes(self, value: bytes, *, key: str, partition: int | None = None) -> int:
        """Send whatever it is, and return the partition in which the log has it."""
        delivered: list[int] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                raise KafkaException(error)
            delivered.append(_number(message.partition()))

        chosen = -1 if partition is None else partition  # -1 leaves it to the partitioner
        self._producer.produce(self._topic, value, key.encode(), chosen, on_delivery=on_delivery)
        assert self._producer.flush(SECONDS) == 0
        return delivered.pop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.flush(SECONDS)


class Feed:
    """Records as they come, read_committed; they are kept in `records`."""

    def __init__(self, brokers: str, topic: str, group: str | None = None) -> None:
        self.topic = topic
        self.group = group or f"outsider-{uuid4().hex}"
        self._consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": self.group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,  # the end of a partition is told by an empty answer
            }
        )
        self._ends: dict[int, int] = {}
        self.records: list[Message] = []
        self._start()

    def _start(self) -> None:
        """Take the partitions that the group gives out."""
        self._consumer.subscribe([self.topic])

    def until(self, condition: Callable[[], bool]) -> None:
        """Read on until the condition holds."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, [record.value() for record in self.records[-20:]]
            self._read()

    def to_the_end(self) -> None:
        """Read all that stands in the assigned partitions now."""
        ends = {
            tp.partition: self._consumer.get_watermark_offsets(tp, timeout=SECONDS, cached=False)[1]
            for tp in self._consumer.assignment()
        }
        self.until(lambda: all(self._ends.get(number, -1) >= end for number, end in ends.items()))

    def partition_count(self) -> int:
        """How many partitions the topic has, as the cluster says."""
        return len(self._consumer.list_topics(self.topic, timeout=SECONDS).topics[self.topic].partitions)

    def _read(self) -> None:
        message = self._consumer.poll(_POLL_SECONDS)
        if message is None:
            return
        error = message.error()
        if error is None:
            self.records.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own code has that name
            self._ends[_number(message.partition())] = _number(message.offset())
        else:
            raise KafkaException(error)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Inbox(Feed):
    """The replies to one client id, from just the partition that the id belongs to (contract section 5)."""

    def __init__(self, brokers: str, prefix: str) -> None:
        self.client_id = f"outsider-{uuid4().hex}"
        self._schema = schema("replies")
        self._checked = 0
        super().__init__(brokers, f"{prefix}.replies")

    def _start(self) -> None:
        partition = murmur2(self.client_id.encode()) % self.partition_count()
        self._consumer.assign([TopicPartition(self.topic, partition, OFFSET_BEGINNING)])

    @property
    def replies(self) -> list[Reply]:
        """What was said to this client so far. Everything read is checked against the published schema."""
        key = self.client_id.encode()
        for record in self.records[self._checked :]:
            self._schema.validate(json.loads(record.value() or b""))
        self._checked = len(self.records)
        return [json.loads(record.value() or b"") for record in self.records if record.key() == key]

    def reply(self, command_id: str) -> Reply:
        """The reply to a command."""
        return self.first(lambda reply: reply["command_id"] == command_id)

    def first(self, matches: Callable[[Reply], bool]) -> Reply:
        """The first reply that matches."""
        self.until(lambda: any(map(matches, self.replies)))
        return next(filter(matches, self.replies))


class Events(Feed):
    """The log of transitions, from its first event on, in a consumer group."""

    def __init__(self, brokers: str, prefix: str, group: str | None = None) -> None:
        super().__init__(brokers, f"{prefix}.transitions", group)

    def of(self, job_id: str) -> list[Event]:
        """What became of a job so far."""
        return [event for event in _events(self.records) if event.get("job_id") == job_id]

    def until_type(self, job_id: str, kind: str) -> Event:
        """Read on to the first event of that type of a job, and return it."""
        self.until(lambda: any(event["type"] == kind for event in self.of(job_id)))
        return next(event for event in self.of(job_id) if event["type"] == kind)

    def all(self) -> list[Event]:
        """Everything so far, in the order of arrival."""
        return _events(self.records)

    def commit(self) -> None:
        """Record the position of the group."""
        self._consumer.commit(asynchronous=False)


@dataclass(slots=True)
class Worker:
    """A worker that is none of ours: it claims, renews and reports by hand (contract sections 3 and 5)."""

    commander: Commander
    inbox: Inbox
    worker_id: str = field(default_factory=lambda: f"foreign-{uuid4().hex}")

    def claim(self, queue: str, **fields: object) -> Grant:
        """Claim one job, and wait for it."""
        command = {"type": "claim", "queue": queue, "wait_seconds": 30, **fields}
        (job,) = self._ask(command, queue).get("jobs", [])
        return job

    def heartbeat(self, job: Grant, **fields: object) -> Mapping[str, object]:
        """Renew a lease; the row of the answer."""
        command = {"type": "heartbeat", "leases": [_lease(job)], **fields}
        (row,) = self._ask(command, job["queue"]).get("leases", [])
        return row

    def report(self, job: Grant, outcome: str, **fields: object) -> str:
        """Report an outcome; what became of it."""
        command = {"type": "report", "outcomes": [{**_lease(job), "outcome": outcome, **fields}]}
        (result,) = self._ask(command, job["queue"]).get("results", [])
        return result

    def _ask(self, command: Json, queue: str) -> Reply:
        command_id = uuid4().hex
        envelope = {"worker_id": self.worker_id, "command_id": command_id, "reply_to": self.inbox.client_id}
        self.commander.send({**command, **envelope}, key=queue)
        return self.inbox.reply(command_id)


def _lease(job: Grant) -> Json:
    return {"job_id": job["job_id"], "attempt": job["attempt"], "lease": job["lease"]}


def _events(records: Iterable[Message]) -> list[Event]:
    return [json.loads(record.value() or b"") for record in records]


def _number(value: int | None) -> int:
    assert value is not None
    return value


def murmur2(data: bytes) -> int:
    """Kafka's hash, made positive, for clients that choose a partition by themselves."""
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * factor & mask
        hashed = (hashed * factor & mask) ^ ((word ^ word >> 24) * factor & mask)
    if rest := data[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * factor & mask
    hashed = (hashed ^ hashed >> 13) * factor & mask
    return (hashed ^ hashed >> 15) & 0x7FFFFFFF
