"""From decisions to the records of one transaction (contract section 2)."""

from __future__ import annotations

from tidelog.core.changelog import InputPositions, position_change, take_changes
from tidelog.core.decision import Decision
from tidelog.core.state import PartitionState
from tidelog.log.port import MAX_RECORD_BYTES, NewRecord, Record
from tidelog.log.topics import Topics
from tidelog_events.codec import encode_answer, encode_transition
from tidelog_events.identity import Partition, partition_of
from tidelog_events.replies import Hello
from tidelog_events.transitions import JobFact, Purged, QueueFact, Transition

FORWARDED = ("forwarded", b"1")
"""The header of a command that has been sent on once; a second misroute is a reject."""


class Batch:
    """Collects what one transaction writes. `size` is in bytes, less the state, which is written last."""

    def __init__(self, topics: Topics, partition: Partition, reply_partitions: int) -> None:
        self._topics = topics
        self._partition = partition
        self._reply_partitions = reply_partitions
        self._records: list[NewRecord] = []
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._records)

    def add(self, decision: Decision) -> None:
        """The events and the answers of a decision; an answer to nobody is dropped."""
        for output in decision.outputs:
            if isinstance(output, Transition):
                self._append(
                    self._topics.transitions, self._partition, _event_key(output), encode_transition(output)
                )
            elif output.to is not None:
                self._append(
                    self._topics.replies,
                    partition_of(output.to, self._reply_partitions),
                    output.to.encode(),
                    encode_answer(output.answer),
                )

    def greet(self) -> None:
        """A `hello` to every partition of the replies: parked claims are to be sent again."""
        hello = encode_answer(Hello(partition=self._partition))
        for partition in range(self._reply_partitions):
            self._append(self._topics.replies, partition, None, hello)

    def forward(self, record: Record, home: int) -> None:
        """Send a command on to the partition that decides it."""
        self._append(self._topics.links, home, record.key, record.value, (FORWARDED,))

    def reject(self, record: Record, reason: str) -> None:
        """Keep what is no command, with its bytes and where it came from.

        A value that the headers push over the log's bound is cut; the original stands where they say.
        """
        headers = [
            ("reason", reason.encode()),
            ("topic", record.topic.encode()),
            ("partition", str(record.partition).encode()),
            ("offset", str(record.offset).encode()),
        ]
        value = record.value
        room = MAX_RECORD_BYTES - len(record.key or b"") - sum(len(n) + len(v) for n, v in headers) - 64
        if value is not None and len(value) > room:
            headers.append(("truncated-from", str(len(value)).encode()))
            value = value[:room]
        self._append(self._topics.rejects, 0, record.key, value, tuple(headers))

    def records(self, state: PartitionState, positions: InputPositions) -> list[NewRecord]:
        """All records of the transaction, with what changed in the state and how far the input was read."""
        for change in (*take_changes(state), position_change(state, positions)):
            self._append(self._topics.state, self._partition, change.key.encode(), change.value)
        return self._records

    def _append(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        self._records.append(NewRecord(topic, partition, key, value, headers))
        self.size += len(value or b"")


def _event_key(event: Transition) -> bytes:
    match event:
        case JobFact() | Purged():
            return event.job_id.encode()
        case QueueFact():
            return event.queue.encode()
    raise TypeError(f"no key is known for a {event.TYPE!r} event")
