"""From a situation to the reasons, the most decisive first. Pure: the same situation, the same words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from tidelog.why.answer import Reason, ReasonCode
from tidelog.why.before_running import awaiting, scheduled
from tidelog.why.engines import no_engine
from tidelog.why.situation import Situation
from tidelog.why.while_running import leased
from tidelog.words import ago, at, because, optional, plural, when
from tidelog_events.record import JobRecord
from tidelog_events.states import JobState

if TYPE_CHECKING:
    from tidelog_projections.archive import ArchivedJob


def explain(situation: Situation) -> list[Reason]:
    """All reasons that hold."""
    job = situation.known.job
    if job is None:
        if situation.known.archived is not None:
            return [_purged(situation.known.archived), *_behind(situation)]
        # The very job may be what Postgres lacks, or what nobody decides.
        return [*no_engine(situation), *_behind(situation), _absent(situation)]
    return [*_of(situation, job), *_behind(situation)]


def _of(situation: Situation, job: JobRecord) -> Iterator[Reason]:
    match job.state:
        case JobState.AWAITING_PARENT:
            yield from awaiting(situation, job)
        case JobState.SCHEDULED:
            yield from scheduled(situation, job)
        case JobState.LEASED:
            yield from leased(situation, job)
        case JobState.SUCCEEDED | JobState.CANCELLED | JobState.DEAD_LETTERED | JobState.QUARANTINED:
            yield _ended(job)
        case _:
            assert_never(job.state)


def _absent(situation: Situation) -> Reason:
    return Reason(
        ReasonCode.UNKNOWN_JOB,
        f"There is no job {situation.job_id}: it was never enqueued, its enqueue is not decided yet, or it "
        f"ended so long ago that it was purged. `tidelog history {situation.job_id} --from-log` tells.",
        {},
    )


def _purged(archived: ArchivedJob) -> Reason:
    job = archived.record
    return Reason(
        ReasonCode.PURGED,
        f"It ended as {job.state}{when(job.terminal_at)}{because(job.terminal_cause)}, and was purged at "
        f"{at(archived.purged_at)}. To run such a job again, enqueue it anew.",
        {
            "state": job.state.value,
            "terminal_at": optional(job.terminal_at),
            "terminal_cause": job.terminal_cause,
            "purged_at": at(archived.purged_at),
        },
    )


def _behind(situation: Situation) -> Iterator[Reason]:
    behind = situation.behind
    if behind is None:
        return
    age = "" if behind.oldest is None else f", the oldest of {ago(behind.oldest, situation.now)}"
    yield Reason(
        ReasonCode.PROJECTION_BEHIND,
        f"Postgres lacks {plural(behind.events, 'event')} of partition {behind.partition}{age}: what is said "
        "here may be old. Check that `tidelog projector` runs.",
        {"partition": behind.partition, "events": behind.events, "oldest": optional(behind.oldest)},
    )


def _ended(job: JobRecord) -> Reason:
    again = ""
    if job.state is JobState.DEAD_LETTERED:
        again = f" `tidelog requeue {job.job_id}` starts it again."
    elif job.state is JobState.QUARANTINED:
        again = f" Start workers that can run it; then `tidelog requeue {job.job_id}` starts it again."
    return Reason(
        ReasonCode.ENDED,
        f"It ended as {job.state}{when(job.terminal_at)}{because(job.terminal_cause)}.{again}",
        {
            "state": job.state.value,
            "terminal_at": optional(job.terminal_at),
            "terminal_cause": job.terminal_cause,
        },
    )
