"""From decisions to the records of one transaction (contract section 2)."""

from __future__ import annotations

from tidelog.core.changelog import InputPositions, position_change, take_changes
from tidelog.core.decision import Decision
from tidelog.core.link import encode_link, target_of
from tidelog.core.state import PartitionState
from tidelog.log.cutting import cut_to_fit
from tidelog.log.port import NewRecord, Record
from tidelog.log.topics import Topics
from tidelog_events.codec import encode_answer, encode_transition
from tidelog_events.identity import JobId, Partition, ScheduleId, partition_of, queue_of
from tidelog_events.replies import Hello
from tidelog_events.transitions import JobFact, Purged, QueueFact, ScheduleFact, Transition

MESSAGE = ("message", b"1")
"""The header that tells a message between partitions from a command that was sent on."""


class Batch:
    """Collects what one transaction writes.

    Attributes:
        size: in bytes: what was read and written, and for each job and schedule that changed the values that
            its state will repeat.
        taken: how many records of the input it deals with.
    """

    def __init__(self, topics: Topics, partition: Partition, partitions: int, reply_partitions: int) -> None:
        self._topics = topics
        self._transitions_topic = topics.transitions  # once: each of these names is put together anew
        self._replies_topic = topics.replies
        self._partition = partition
        self._partitions = partitions
        self._reply_partitions = reply_partitions
        self._records: list[NewRecord] = []
        self._changed: set[JobId | ScheduleId] = set()
        self.size = 0
        self.taken = 0

    def __bool__(self) -> bool:
        """Whether there is something to write: that input was read counts, whatever it led to."""
        return bool(self._records or self.taken)

    def take_in(self, record: Record) -> None:
        """A record of the input was dealt with; the positions that are written with the batch are past it."""
        self.taken += 1
        self.size += len(record.value or b"")

    def add(self, decision: Decision) -> None:
        """The events, answers and messages of a decision; an answer to nobody is dropped."""
        for output in decision.outputs:
            if isinstance(output, Transition):
                self._add_event(decision.state, output)
            elif output.to is not None:
                self._append(
                    self._replies_topic,
                    partition_of(output.to, self._reply_partitions),
                    output.to.encode(),
                    encode_answer(output.answer),
                )
        for message in decision.messages:
            self._append(
                self._topics.links,
                target_of(message, self._partitions),
                queue_of(message.parent_id).encode(),
                encode_link(message),
                (MESSAGE,),
            )

    def _add_event(self, state: PartitionState, event: Transition) -> None:
        if isinstance(event, JobFact):
            key: str = event.job_id
            if key not in self._changed:
                self._count_state(state, event.job_id)
        elif isinstance(event, ScheduleFact):
            key = event.schedule_id
            if key not in self._changed:
                self._count_schedule(state, event.schedule_id)
        else:
            key = _other_key(event)
        self._append(self._transitions_topic, self._partition, key.encode(), encode_transition(event))

    def _count_state(self, state: PartitionState, job_id: JobId) -> None:
        self._changed.add(job_id)
        job = state.jobs.get(job_id)
        if job is not None:
            self.size += len(job.payload) + len(job.output)

    def _count_schedule(self, state: PartitionState, schedule_id: ScheduleId) -> None:
        self._changed.add(schedule_id)
        schedule = state.timetable.schedules.get(schedule_id)
        if schedule is not None:
            self.size += len(schedule.payload)

    def greet(self, position: int) -> None:
        """A `hello` to every partition of the replies: claims parked before it are to be sent again."""
        hello = encode_answer(Hello(partition=self._partition, position=position))
        for partition in range(self._reply_partitions):
            self._append(self._replies_topic, partition, None, hello)

    def forward(self, record: Record, home: int) -> None:
        """Send a command on to the partition that decides it. That it stands in `links` says that it was."""
        self._append(self._topics.links, home, record.key, record.value)

    def reject(self, record: Record, reason: str) -> None:
        """Keep what is no command, with its bytes and where it came from.

        What the headers push over the log's bound is cut; the original stands where they say.
        """
        headers = (
            ("reason", reason.encode()),
            ("topic", record.topic.encode()),
            ("partition", str(record.partition).encode()),
            ("offset", str(record.offset).encode()),
        )
        kept = cut_to_fit(NewRecord(self._topics.rejects, 0, record.key, record.value, headers))
        self._append(*kept)

    def records(self, state: PartitionState, positions: InputPositions) -> list[NewRecord]:
        """All records of the transaction, with what changed in the state and how far the input was read."""
        changes = (*take_changes(state), position_change(state, positions))
        topic, partition = self._topics.state, self._partition
        self._records += [NewRecord(topic, partition, key.encode(), value) for key, value in changes]
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


def _other_key(event: Transition) -> str:
    match event:
        case Purged():
            return event.job_id
        case QueueFact():
            return event.queue
    raise TypeError(f"no key is known for a {event.TYPE!r} event")
