"""Enqueueing: the commands of jobs, in generations or in one transaction, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from tidelog.client.batch import Batch, Entry
from tidelog.client.batch_errors import (
    MAX_ATOMIC_BYTES,
    MAX_ATOMIC_JOBS,
    BatchTooLarge,
    BatchUnconfirmed,
    NotSent,
)
from tidelog.client.errors import (
    ClientClosed,
    CommandRefused,
    PayloadTooLarge,
    ReplyTimeout,
    TooManyParents,
    UnknownParent,
    WireNameTooLong,
    unexpected_reply,
)
from tidelog.client.exchange import Channel
from tidelog.client.newjob import NewJob
from tidelog.client.portions import portions
from tidelog.log.port import LogUnavailable, NewRecord, OutcomeUnknown
from tidelog_events.errors import TidelogError
from tidelog_events.identity import ClientId, CommandId, JobId, partition_of, queue_of
from tidelog_events.replies import EnqueueReply, Reply, Result


class Enqueuer:
    """Enqueues for one client.

    Args:
        exchange: brings commands to the log and answers back.
        topic: of the commands, and how many partitions it has.
        me: who is answered.
    """

    def __init__(self, exchange: Channel, topic: str, partitions: int, me: ClientId) -> None:
        self._exchange = exchange
        self._topic = topic
        self._partitions = partitions
        self._me = me

    def record(self, new: NewJob, reply_to: ClientId | None = None) -> NewRecord:
        """The command that asks for a job."""
        queue = queue_of(new.job_id)
        partition = partition_of(queue, self._partitions)
        return NewRecord(self._topic, partition, queue.encode(), new.encoded(reply_to))

    async def generation(self, jobs: Sequence[Entry], timeout: float) -> list[JobId | TidelogError]:
        """Enqueue jobs of which none waits for another; for each its id, or why not."""
        commands = _Enqueues(jobs, self._answered)
        replies = await self._exchange.ask(_what(jobs), commands, timeout=timeout, resend=True)
        return [self._enqueued(new, replies.get(new.command_id), timeout) for new in commands.written]

    async def by_generations(self, batch: Batch, timeout: float) -> Mapping[int, JobId | TidelogError]:
        """For each place of the batch its job's id, or why not."""
        results: dict[int, JobId | TidelogError] = {}
        for generation in batch.generations:
            entries = [batch.entries[place] for place in generation]
            answers: Sequence[JobId | TidelogError]
            if any(_is_unknown(result) for result in results.values()):
                answers = [NotSent(entry.job_id) for entry in entries if isinstance(entry, NewJob)]
            else:
                try:
                    answers = await self.generation(entries, timeout)
                except (LogUnavailable, ClientClosed) as error:
                    if not results:
                        raise
                    answers = [error] * len(entries)
            results.update(zip(generation, answers, strict=True))
        return results

    async def whole(self, batch: Batch, timeout: float) -> Mapping[int, JobId | TidelogError]:
        """The same in one transaction. In a partition parents come first; between partitions engines see to
        it that a parent of the same transaction is known.
        """
        order = [place for generation in batch.generations for place in generation]
        if not order:
            return {}
        if len(order) > MAX_ATOMIC_JOBS:
            raise BatchTooLarge(len(order))
        entries = [batch.entries[place] for place in order]
        commands = _Enqueues(entries, self._answered)
        records: dict[CommandId, NewRecord] = {}
        async for portion in portions(commands):
            records |= portion
        size = sum(len(record.value or b"") for record in records.values())
        if size > MAX_ATOMIC_BYTES:
            raise BatchTooLarge(len(order), size)
        try:
            replies = await self._exchange.ask_whole(_what(entries), records, timeout=timeout)
        except OutcomeUnknown as error:
            written = dict(zip(order, commands.written, strict=True))
            raise BatchUnconfirmed([written[place] for place in batch.places], timeout) from error
        return {
            place: self._enqueued(new, replies.get(new.command_id), timeout)
            for place, new in zip(order, commands.written, strict=True)
        }

    def _enqueued(self, new: NewJob, reply: Reply | None, timeout: float) -> JobId | TidelogError:
        if reply is None:
            return ReplyTimeout(
                f"enqueue of {new.job_id}",
                job_id=new.job_id,
                command_id=new.command_id,
                partition=partition_of(queue_of(new.job_id), self._partitions),
                timeout=timeout,
            )
        match reply.result:
            case Result.OK | Result.DUPLICATE:
                return new.job_id
            case Result.UNKNOWN_PARENT:
                reason = reply.message if isinstance(reply, EnqueueReply) else None
                return UnknownParent(new.job_id, reason or f"of {', '.join(new.parents)} one does not exist")
            case Result.PAYLOAD_TOO_LARGE:
                return PayloadTooLarge(new.job_id, new.payload_size)
            case Result.WIRE_NAME_TOO_LONG:
                return WireNameTooLong(new.job_id, new.wire_name)
            case Result.TOO_MANY_PARENTS:
                return TooManyParents(new.job_id, len(new.parents))
            case _:
                return unexpected_reply(reply, f"enqueue of {new.job_id}")

    def _answered(self, new: NewJob) -> NewRecord:
        return self.record(new, self._me)


class _Enqueues:
    """The commands of many jobs.

    Attributes:
        written: the jobs that were written so far, in order.
    """

    def __init__(self, jobs: Sequence[Entry], write: Callable[[NewJob], NewRecord]) -> None:
        self._jobs = jobs
        self._write = write
        self.chosen = [job.command_id for job in jobs if isinstance(job, NewJob)]
        self.written: list[NewJob] = []

    def __iter__(self) -> Iterator[tuple[CommandId, NewRecord]]:
        for job in self._jobs:
            new = job if isinstance(job, NewJob) else NewJob(job)
            self.written.append(new)
            yield new.command_id, self._write(new)

    def again(self, command_id: CommandId) -> NewRecord:
        """The command of a job once more."""
        return self._write(self._by_command_id[command_id])

    @cached_property
    def _by_command_id(self) -> Mapping[CommandId, NewJob]:
        return {new.command_id: new for new in self.written}


def _what(jobs: Sequence[Entry]) -> str:
    """The call, for messages."""
    first, more = jobs[0], len(jobs) - 1
    what = f"enqueue of {first.job_id if isinstance(first, NewJob) else f'a job {first.wire_name!r}'}"
    return f"{what} and {more} more" if more else what


def _is_unknown(result: JobId | TidelogError) -> bool:
    """Whether it is open if the job exists: then its children cannot be sent yet."""
    return isinstance(result, TidelogError) and not isinstance(result, CommandRefused)
