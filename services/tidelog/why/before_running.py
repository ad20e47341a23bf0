"""Why a job has not started: parents, time, and what is so of its queue."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.inspection.presence import SIGN_SECONDS
from tidelog.why.answer import Reason, ReasonCode
from tidelog.why.engines import no_engine
from tidelog.why.situation import Engine, Situation
from tidelog.why.while_running import cancel_requested
from tidelog.words import at, first_few, optional, plural, span, when
from tidelog_events.jsontext import Json
from tidelog_events.record import JobRecord
from tidelog_projections.circumstances import MAX_COUNTED
from tidelog_projections.fold import QueueSettings


def awaiting(situation: Situation, job: JobRecord) -> Iterator[Reason]:
    """The reasons of a job whose parents have not all ended."""
    yield from no_engine(situation)
    yield _parents(situation, job)
    yield from _paused(situation, job, "Once they have ended it waits for that too")


def _parents(situation: Situation, job: JobRecord) -> Reason:
    open_parents = [
        parent for parent in situation.known.parents if parent.state is None or not parent.state.is_terminal
    ]
    details: dict[str, Json] = {
        "parents_remaining": job.parents_remaining,
        "parents": [
            {"job_id": parent.job_id, "state": None if parent.state is None else parent.state.value}
            for parent in open_parents
        ],
    }
    total = len(situation.known.parents)
    of_all = "its parent" if total == 1 else f"{job.parents_remaining} of its {total} parents"
    if not open_parents:
        return Reason(
            ReasonCode.AWAITING_PARENTS,
            f"It waits to hear of {of_all}: all have ended, on other partitions, and the word is on its "
            "way. If this stays, check that an engine serves every partition: `tidelog doctor`.",
            details,
        )
    named = first_few([f"{parent.job_id} ({parent.state or 'not known'})" for parent in open_parents])
    return Reason(
        ReasonCode.AWAITING_PARENTS,
        f"It waits for {of_all}: {named}. `tidelog why {open_parents[0].job_id}` tells more.",
        details,
    )


def _paused(situation: Situation, job: JobRecord, more: str | None = None) -> Iterator[Reason]:
    queue = situation.known.queue
    if queue is None or not queue.paused:
        return
    addition = "" if more is None else f" {more}."
    yield Reason(
        ReasonCode.QUEUE_PAUSED,
        f"The queue {job.queue} was paused by {queue.paused_by or 'somebody who left no name'}"
        f"{when(queue.paused_at)}.{addition} `tidelog resume {job.queue}` lets it go on.",
        {"queue": job.queue, "paused_by": queue.paused_by, "paused_at": optional(queue.paused_at)},
    )


def scheduled(situation: Situation, job: JobRecord) -> Iterator[Reason]:
    """The reasons of a job that a worker could have, if nothing were in its way."""
    yield from no_engine(situation)
    yield from _paused(situation, job)
    is_due = job.due_time <= situation.now
    if not is_due:
        yield _not_due(situation, job)
    queue = situation.known.queue
    is_full = False
    if is_due and queue is not None and queue.concurrency_limit is not None:
        is_full = situation.known.leased >= queue.concurrency_limit
        if is_full:
            yield _limit(situation, queue, queue.concurrency_limit)
    unserved = list(_unserved(situation, job))
    yield from unserved
    is_free = situation.engine not in {Engine.NONE, Engine.CHANGING} and not (queue and queue.paused)
    if is_due and is_free and not is_full and not unserved:
        yield _soon(situation, job)
    if job.cancel_requested:
        yield cancel_requested(situation, "the worker that gets it next ends it without running the handler")


def _not_due(situation: Situation, job: JobRecord) -> Reason:
    details: dict[str, Json] = {"due_time": at(job.due_time), "attempt": job.attempt}
    error = situation.known.last_error
    until = f"{at(job.due_time)}, in {span(situation.now, job.due_time)}"
    if job.attempt == 0 or error is None:
        again = "" if job.attempt == 0 else f" (attempt {job.attempt + 1})"
        return Reason(ReasonCode.NOT_DUE, f"It is not due{again} until {until}.", details)
    return Reason(
        ReasonCode.NOT_DUE,
        f"Attempt {error.attempt} failed ({error.error}); the next one is not due until {until}.",
        {**details, "last_error": error.error},
    )


def _limit(situation: Situation, queue: QueueSettings, limit: int) -> Reason:
    holders = situation.known.holders
    named = first_few([f"{holder.job_id} ({holder.worker_id})" for holder in holders])
    return Reason(
        ReasonCode.LIMIT_REACHED,
        f"The queue {queue.queue} lets {plural(limit, 'job')} run at once, and {situation.known.leased} "
        f"do: {named}. `tidelog limit {queue.queue} N` changes that.",
        {
            "queue": queue.queue,
            "limit": limit,
            "leased": situation.known.leased,
            "jobs": [
                {
                    "job_id": holder.job_id,
                    "worker_id": holder.worker_id,
                    "lease_expiry": at(holder.lease_expiry),
                }
                for holder in holders
            ],
        },
    )


def _unserved(situation: Situation, job: JobRecord) -> Iterator[Reason]:
    """That nobody asks for jobs of the queue, or that those who do are busy."""
    presence = situation.presence
    if presence is None or presence.asking.get(job.queue):
        return
    busy = sorted(presence.holding.get(job.queue, ()))
    if busy:
        yield Reason(
            ReasonCode.WORKERS_BUSY,
            f"The workers of the queue {job.queue} have no free slot: {first_few(busy)}. Start more of "
            "them, or raise their --concurrency.",
            {"queue": job.queue, "workers": list(busy)},
        )
    elif presence.is_whole:
        others = sorted(presence.workers)
        seen = f" Others of this partition were heard of: {first_few(others)}." if others else ""
        yield Reason(
            ReasonCode.NO_WORKER,
            f"No worker has asked for jobs of the queue {job.queue} lately (within {SIGN_SECONDS} s): none "
            f"serves it, or those that do are busy with other queues.{seen} "
            f"Start one that serves it: `tidelog worker MODULE:APP --queues {job.queue}`.",
            {"queue": job.queue, "within_seconds": SIGN_SECONDS, "other_workers": list(others)},
        )


def _soon(situation: Situation, job: JobRecord) -> Reason:
    ahead = situation.known.ahead
    before = "no due job is" if ahead == 0 else f"{plural(ahead, 'due job')} are"
    if ahead == 1:
        before = "1 due job is"
    if ahead >= MAX_COUNTED:
        before = f"{MAX_COUNTED:,} due jobs or more are"
    return Reason(
        ReasonCode.SOON,
        f"It has been due for {span(job.due_time, situation.now)} and is free to go; {before} before it in "
        f"the queue {job.queue}. It goes when a worker has a free slot. If it does not move, start more "
        "workers; `tidelog doctor` looks at the engine.",
        {"queue": job.queue, "ahead": ahead, "due_time": at(job.due_time)},
    )
