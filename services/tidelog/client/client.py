"""The client: asks for changes over the log, and reads jobs back from Postgres (contract section 8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, TypeAlias, Unpack

from tidelog.client.atomic import TRANSACTION_SECONDS, AtomicSender
from tidelog.client.batch import Batch
from tidelog.client.batch_errors import BatchIncomplete
from tidelog.client.checking import by, check_command, check_job_id
from tidelog.client.enqueueing import Enqueuer
from tidelog.client.errors import (
    DEFAULT_TIMEOUT,
    NoProjection,
    NotCancellable,
    NotRequeueable,
    ReplyTimeout,
    SendUnconfirmed,
    unexpected_reply,
)
from tidelog.client.exchange import Channel, Exchange
from tidelog.client.inbox import Inbox
from tidelog.client.minting import mint
from tidelog.client.newjob import JobOptions, NewJob
from tidelog.client.portions import OneCommand
from tidelog.client.reading import JobReader, Jobs, ProjectionOpener
from tidelog.client.schedule_calls import ScheduleCalls
from tidelog.client.sender import Sender
from tidelog.handler.jobs import JobRequest
from tidelog.log.port import Log, NewRecord, OutcomeUnknown
from tidelog.log.topics import Topics
from tidelog.why import Why, ask_why
from tidelog_events.codec import encode_command
from tidelog_events.commands import (
    Cancel,
    Command,
    PauseQueue,
    Requeue,
    ResumeQueue,
    SetConcurrencyLimit,
)
from tidelog_events.errors import TidelogError
from tidelog_events.identity import ClientId, CommandId, JobId, Partition, QueueName, partition_of, queue_of
from tidelog_events.jsontext import Json
from tidelog_events.record import JobRecord
from tidelog_events.replies import Reply, Result

Explain: TypeAlias = Callable[[JobId], Awaitable[Why]]
CancelResult: TypeAlias = Literal[Result.CANCELLED_IMMEDIATELY, Result.CANCELLATION_REQUESTED]


class Client(ScheduleCalls):
    """Asks engines for changes, and reads jobs back. Made by `App.client()` or `Client.open`.

    It belongs to the event loop that opened it; any number of tasks may use it at once, and any number of
    clients may live in one process. All calls are bounded by their `timeout`, in seconds.

    A cancelled call leaves nothing behind in the client; whether its command is decided is unknown.

    Every call that sends may raise, beside its refusals:
        LogUnavailable: the log cannot be reached; nothing was sent.
        ReplyTimeout: no engine answered in time; what happened is unknown. An enqueue is sent a second time
            (as the same command) before that; the other commands are not, since a second requeue or pause
            may not mean what the first one meant.
        ClientClosed: the client was closed meanwhile.
    """

    def __init__(
        self,
        exchange: Channel,
        jobs: Jobs,
        topic: str,
        partitions: int,
        me: ClientId,
        *,
        explain: Explain | None = None,
    ) -> None:
        self._exchange = exchange
        self._enqueuer = Enqueuer(exchange, topic, partitions, me)
        self._jobs = jobs
        self._topic = topic
        self._partitions = partitions
        self._me = me
        self._explain = explain

    @classmethod
    @asynccontextmanager
    async def open(
        cls, log: Log, topics: Topics, *, projection: ProjectionOpener | None = None
    ) -> AsyncIterator[Client]:
        """A client over an open log, which the caller closes.

        Args:
            log: where engines read.
            topics: the names of the installation's topics.
            projection: opens the connection to Postgres when the first `get` or `wait` needs it.

        Raises:
            UnknownTopic: the topics are not there; `tidelog init` creates them.
            LogUnavailable: the log does not answer.
        """
        me = ClientId(f"client-{mint()}")
        partitions = await log.partitions(topics.commands)
        async with AsyncExitStack() as stack:
            inbox = Inbox(log, topics, me)
            stack.push_async_callback(inbox.close)
            await inbox.start()
            atomic = AtomicSender(
                lambda: log.writer(
                    topics.client_transactional_id(me), transaction_seconds=TRANSACTION_SECONDS
                )
            )
            exchange = Exchange(inbox, Sender(await log.producer()), atomic)
            stack.push_async_callback(exchange.close)
            jobs = JobReader(projection, exchange.positions)
            stack.push_async_callback(jobs.close)

            async def explain(job_id: JobId) -> Why:
                return await ask_why(log, topics, await jobs.opened(), job_id)

            yield cls(exchange, jobs, topics.commands, partitions, me, explain=explain)

    @property
    def client_id(self) -> ClientId:
        """What this client's commands carry as `reply_to`."""
        return self._me

    @property
    def pending(self) -> int:
        """How many commands wait for an answer now."""
        return self._exchange.pending

    async def enqueue(
        self,
        job: JobRequest | NewJob | str,
        payload: object = None,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        **options: Unpack[JobOptions],
    ) -> JobId:
        """Enqueue a job, and return its id once an engine has accepted it.

        A job with that id that is there already (`Duplicate`) is no error: its id is returned.

        Args:
            job: what `handler.job(...)` returned; a wire name, with its payload, when the handler lives
                elsewhere; or a `NewJob`.
            payload: for a wire name: any JSON value.
            timeout: seconds to wait for the decision.
            options: as for `NewJob`: queue, key, delay, due, parents, mode, tags, retry, trace_context,
                workflow_id, actor, command_id.

        Raises:
            InvalidCommand, PayloadTooLarge, WireNameTooLong, TooManyParents: refused, mostly before
                anything is sent.
            UnknownParent: a parent does not exist.
            ReplyTimeout: as above; repeat with its `command_id` and the same key.
            ValueError: arguments that contradict each other, or a time without a zone.
        """
        new = _new_job(job, payload, options)
        [result] = await self._enqueuer.generation([new], timeout)
        if isinstance(result, TidelogError):
            raise result
        return result

    async def send(
        self,
        job: JobRequest | NewJob | str,
        payload: object = None,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        **options: Unpack[JobOptions],
    ) -> JobId:
        """Send a job, and return its id once the log has the command, without awaiting the decision.

        What only an engine can refuse (an unknown parent) is not heard of; the arguments are those of
        `enqueue`, and so is what is refused before anything is sent.

        Raises:
            SendUnconfirmed: the log did not confirm in time; repeat with its `command_id` and the same key.
        """
        new = _new_job(job, payload, options)
        record = self._enqueuer.record(new)
        try:
            await self._exchange.tell(f"enqueue of {new.job_id}", record, timeout=timeout)
        except OutcomeUnknown as error:
            raise SendUnconfirmed(new.job_id, new.command_id, timeout) from error
        return new.job_id

    async def enqueue_many(
        self,
        jobs: Iterable[JobRequest | NewJob],
        *,
        atomic: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> list[JobId]:
        """Enqueue many jobs in one round trip per generation of parents; the ids, in input order.

        Jobs of the batch may name each other as parents, on whatever queues. Of several with the same id the
        first counts, and all return the id, as for jobs that are there already.

        Args:
            jobs: descriptions, or `NewJob`s where there is more to say.
            atomic: all commands come into the log in one transaction, or none does, over any number of
                queues; at most 10,000 jobs, of 16 MiB together. It makes one round trip of all generations.
                Engines still decide each job by itself: they may refuse one for an unknown parent.
            timeout: seconds without any progress after which the waiting ends.

        Raises:
            BatchIncomplete: some were refused or not answered; it holds the result of each. To call again
                with the same `NewJob`s is safe.
            BatchTooLarge: over the bounds of `atomic`; nothing was sent.
            BatchUnconfirmed: with `atomic`, the log did not confirm: it has all of the commands or none.
            InvalidCommand, PayloadTooLarge, WireNameTooLong, TooManyParents: a job can be refused here;
                nothing was sent.
            UnknownParent: jobs of the batch wait for each other in a circle; nothing was sent.
            ValueError: two jobs have the same `command_id`; nothing was sent.
        """
        batch = Batch(jobs)
        enqueue = self._enqueuer.whole if atomic else self._enqueuer.by_generations
        results = await enqueue(batch, timeout)
        in_order = [results[place] for place in batch.places]
        accepted = [result for result in in_order if not isinstance(result, TidelogError)]
        if len(accepted) < len(in_order):
            raise BatchIncomplete(in_order)
        return accepted

    async def cancel(
        self,
        job_id: str,
        *,
        actor: str | None = None,
        command_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> CancelResult:
        """Cancel a job that has not ended: at once, or, when a worker has it, by asking the worker.

        Args:
            job_id: the job.
            actor: who asks; it becomes the job's terminal cause.
            command_id: names this very call; minted when absent.
            timeout: seconds to wait for the decision.

        Raises:
            NotCancellable: the job has ended, or there is none.
        """
        known = check_job_id(job_id)
        command = check_command(Cancel, {**by(actor, command_id), "job_id": known})
        reply = await self._decision(command, f"cancel of {known}", queue_of(known), known, timeout)
        if reply.result is Result.NOT_CANCELLABLE:
            raise NotCancellable(known)
        if reply.result is Result.CANCELLED_IMMEDIATELY or reply.result is Result.CANCELLATION_REQUESTED:
            return reply.result
        raise unexpected_reply(reply, f"cancel of {known}")

    async def requeue(
        self,
        job_id: str,
        *,
        actor: str | None = None,
        command_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Start a dead-lettered or quarantined job again, due now. The arguments are those of `cancel`.

        Raises:
            NotRequeueable: the job is in another state, or there is none.
        """
        known = check_job_id(job_id)
        command = check_command(Requeue, {**by(actor, command_id), "job_id": known})
        reply = await self._decision(command, f"requeue of {known}", queue_of(known), known, timeout)
        if reply.result is Result.NOT_REQUEUEABLE:
            raise NotRequeueable(known)
        if reply.result is not Result.REQUEUED:
            raise unexpected_reply(reply, f"requeue of {known}")

    async def pause_queue(
        self,
        queue: str,
        *,
        actor: str | None = None,
        command_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Let no job of a queue start from now on. What runs goes on. The arguments are those of `cancel`."""
        command = check_command(PauseQueue, {**by(actor, command_id), "queue": queue})
        await self._control(command, f"pause of {queue}", timeout)

    async def resume_queue(
        self,
        queue: str,
        *,
        actor: str | None = None,
        command_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Let the jobs of a queue start again. The arguments are those of `cancel`."""
        command = check_command(ResumeQueue, {**by(actor, command_id), "queue": queue})
        await self._control(command, f"resume of {queue}", timeout)

    async def set_concurrency_limit(
        self,
        queue: str,
        limit: int | None,
        *,
        actor: str | None = None,
        command_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Bound how many jobs of a queue run at once, 1 or more; None for no bound."""
        given: dict[str, Json] = {**by(actor, command_id), "queue": queue, "limit": limit}
        await self._control(check_command(SetConcurrencyLimit, given), f"limit of {queue}", timeout)

    async def get(self, job_id: str, *, timeout: float = DEFAULT_TIMEOUT) -> JobRecord | None:
        """A job from Postgres; None when there is none.

        It shows at least what this client's own answered commands have done.

        Raises:
            ProjectionBehind: Postgres did not catch up with them within `timeout` seconds.
        """
        known = check_job_id(job_id)
        return await self._jobs.get(known, self._partition(queue_of(known)), timeout=timeout)

    async def why(self, job_id: str) -> Why:
        """Why a job is not running, or that it is: all reasons that hold, the most decisive first.

        It looks at Postgres and the log, and takes some seconds at most. Nothing is changed.

        Raises:
            LogUnavailable, ProjectionUnavailable: one of them does not answer.
            NoProjection: this client was opened without Postgres.
        """
        known = check_job_id(job_id)
        if self._explain is None:
            raise NoProjection("This client works without log and Postgres, so it cannot tell why.")
        return await self._explain(known)

    async def wait(self, job_id: str, timeout: float = DEFAULT_TIMEOUT) -> JobRecord:
        """A job once it has ended, whatever its end: look at `state`.

        Raises:
            WaitTimeout: it did not end within `timeout` seconds, or Postgres does not know it.
            ProjectionBehind: as for `get`.
        """
        known = check_job_id(job_id)
        return await self._jobs.wait(known, self._partition(queue_of(known)), timeout=timeout)

    async def _control(
        self, command: PauseQueue | ResumeQueue | SetConcurrencyLimit, what: str, timeout: float
    ) -> None:
        reply = await self._decision(command, what, command.queue, None, timeout)
        if reply.result is not Result.OK:
            raise unexpected_reply(reply, what)

    async def _decision(
        self,
        command: Command,
        what: str,
        queue: QueueName,
        job_id: JobId | None,
        timeout: float,
        *,
        resend: bool = False,
    ) -> Reply:
        command_id = CommandId(mint()) if command.command_id is None else command.command_id
        sent = command.model_copy(update={"command_id": command_id, "reply_to": self._me})
        asked = OneCommand(command_id, self._record(sent, queue))
        replies = await self._exchange.ask(what, asked, timeout=timeout, resend=resend)
        reply = replies.get(command_id)
        if reply is None:
            raise ReplyTimeout(
                what,
                job_id=job_id,
                command_id=command_id,
                partition=self._partition(queue),
                timeout=timeout,
            )
        return reply

    def _record(self, command: Command, queue: QueueName) -> NewRecord:
        return NewRecord(self._topic, self._partition(queue), queue.encode(), encode_command(command))

    def _partition(self, queue: QueueName) -> Partition:
        return partition_of(queue, self._partitions)


def _new_job(job: JobRequest | NewJob | str, payload: object, options: JobOptions) -> NewJob:
    if not isinstance(job, NewJob):
        return NewJob(job, payload, **options)
    if payload is not None or options:
        raise ValueError(f"{job!r} says everything already; give no payload and no options beside it")
    return job
