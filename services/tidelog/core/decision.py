"""A decision in the making: events that are applied as they are emitted, and the answers to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, TypedDict

from tidelog.core.evolve import evolve
from tidelog.core.state import Job, PartitionState, Queue
from tidelog_events.identity import ClientId, CommandId, JobId, Partition, QueueName, Sequence
from tidelog_events.instants import Instant
from tidelog_events.replies import Answer
from tidelog_events.transitions import Transition


@dataclass(frozen=True, slots=True)
class Addressed:
    """An answer and the client that it is for; an engine has nobody to give it to when there is none."""

    to: ClientId | None
    answer: Answer


Output: TypeAlias = Transition | Addressed


class EventFields(TypedDict):
    """What every event carries."""

    at: Instant
    partition: Partition
    sequence: Sequence
    cause_command_id: CommandId | None


class JobFields(EventFields):
    """What every event about a job carries."""

    job_id: JobId
    queue: QueueName
    wire_name: str


class StepFields(JobFields):
    """What every step of a job's life carries."""

    ordinal: int


@dataclass(slots=True)
class Decision:
    """What one command, or the timers of one instant, lead to, in the order of contract section 6.

    Attributes:
        cause: the command that all of it goes back to; None for a timer.
        outputs: events and answers in their order.
        touched: queues of which more may be claimed than before.
    """

    state: PartitionState
    now: Instant
    cause: CommandId | None = None
    outputs: list[Output] = field(default_factory=list)
    touched: dict[QueueName, Queue] = field(default_factory=dict)

    def emit(self, event: Transition) -> None:
        """Let an event happen: the state is changed at once, and the next rule sees it."""
        evolve(self.state, event)
        self.outputs.append(event)

    def answer(self, to: ClientId | None, answer: Answer) -> None:
        """Answer somebody."""
        self.outputs.append(Addressed(to, answer))

    def touch(self, queue: QueueName) -> None:
        """Parked claims on the queue may be served now."""
        self.touched[queue] = self.state.queue(queue)

    def event_fields(self) -> EventFields:
        """The common fields of the next event."""
        return {
            "at": self.now,
            "partition": self.state.partition,
            "sequence": self.state.sequence,
            "cause_command_id": self.cause,
        }

    def job_fields(self, job: Job) -> JobFields:
        """The fields of the next event, about a job."""
        return {
            "at": self.now,
            "partition": self.state.partition,
            "sequence": self.state.sequence,
            "cause_command_id": self.cause,
            "job_id": job.job_id,
            "queue": job.queue,
            "wire_name": job.wire_name,
        }

    def step_fields(self, job: Job) -> StepFields:
        """The fields of the next event, a step of a job's life."""
        return {
            "at": self.now,
            "partition": self.state.partition,
            "sequence": self.state.sequence,
            "cause_command_id": self.cause,
            "job_id": job.job_id,
            "queue": job.queue,
            "wire_name": job.wire_name,
            "ordinal": job.ordinal + 1,
        }
