"""A decision in the making: events that are applied as they are emitted, and the answers to them."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, TypedDict

from tidelog.core.evolve import evolve
from tidelog.core.link import DependentEnded, DependentLives, LinkMessage
from tidelog.core.state import Job, PartitionState, Queue
from tidelog_events.commands import Cancel, Command, Enqueue
from tidelog_events.identity import ClientId, CommandId, JobId, Partition, QueueName, Sequence
from tidelog_events.instants import Instant
from tidelog_events.parsing import Refusal
from tidelog_events.replies import Answer, InvalidReply, Reply, Result
from tidelog_events.transitions import JobTransition, Requeued, Transition


class Addressed(NamedTuple):
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


class EdgeFields(TypedDict):
    """What every message between partitions carries."""

    child_id: JobId
    child_partition: Partition
    admission: int
    parent_id: JobId
    cause_command_id: CommandId | None


class Decision:
    """What one command, or the timers of one instant, lead to, in the order of contract section 6.

    Attributes:
        cause: the command that all of it goes back to; None for a timer.
        outputs: events and answers in their order.
        messages: to other partitions, in their order.
        released: commands about a pending job that were held until it was decided, and can be decided now.
        touched: queues with parked claims of which more may be claimed than before.
    """

    __slots__ = ("cause", "messages", "now", "outputs", "released", "state", "touched")

    def __init__(self, state: PartitionState, now: Instant) -> None:
        self.state = state
        self.now = now
        self.cause: CommandId | None = None
        self.outputs: list[Output] = []
        self.touched: dict[QueueName, Queue] = {}
        self.messages: list[LinkMessage] = []
        self.released: list[Enqueue | Cancel] = []

    def emit(self, event: Transition) -> None:
        """Let an event happen: the state is changed at once, and the next rule sees it."""
        evolve(self.state, event)
        self.outputs.append(event)
        if isinstance(event, JobTransition):
            job = self.state.jobs[event.job_id]
            if job.admission is not None:
                self._tell_parents_elsewhere(job, job.admission, event)

    def _tell_parents_elsewhere(self, job: Job, admission: int, event: JobTransition) -> None:
        """The partitions of a job's parents keep these as long as the job lives."""
        for parent_id, sequence in job.parents.items():
            if self.state.is_home_of(parent_id):
                continue
            edge = self.edge_fields(job.job_id, admission, parent_id)
            if event.state.is_terminal:
                self.messages.append(DependentEnded(**edge))
            elif isinstance(event, Requeued):
                self.messages.append(DependentLives(**edge, parent_sequence=sequence))

    def edge_fields(self, child_id: JobId, admission: int, parent_id: JobId) -> EdgeFields:
        """The fields of a message about an edge of a job of this partition."""
        return {
            "child_id": child_id,
            "child_partition": self.state.partition,
            "admission": admission,
            "parent_id": parent_id,
            "cause_command_id": self.cause,
        }

    def answer(self, to: ClientId | None, answer: Answer) -> None:
        """Answer somebody."""
        self.outputs.append(Addressed(to, answer))

    def reply(self, command: Command, result: Result) -> None:
        """Answer a command with its result alone."""
        self.answer(
            command.reply_to,
            Reply(
                command_id=command.command_id,
                type=command.type,
                result=result,
                partition=self.state.partition,
                sequence=self.state.last_sequence,
            ),
        )

    def refuse(self, refusal: Refusal) -> None:
        """Answer a command that is not carried out, because a field of it is wrong."""
        self.answer(
            refusal.reply_to,
            InvalidReply(
                command_id=refusal.command_id,
                type=refusal.type,
                result=Result.INVALID,
                partition=self.state.partition,
                sequence=self.state.last_sequence,
                field=refusal.field,
                message=refusal.message,
            ),
        )

    def touch(self, queue: QueueName) -> None:
        """Parked claims on the queue, if there are any, may be served now."""
        waiting = self.state.waiting_queues.get(queue)
        if waiting is not None:
            self.touched[queue] = waiting

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
