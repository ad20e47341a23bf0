"""What becomes of a job that a worker has."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.why.answer import Reason, ReasonCode
from tidelog.why.engines import no_engine
from tidelog.why.situation import Situation
from tidelog.words import ago, at, optional, span, when
from tidelog_events.jsontext import Json
from tidelog_events.record import JobRecord


def leased(situation: Situation, job: JobRecord) -> Iterator[Reason]:
    """The reasons of a job that a worker has."""
    known, now = situation.known, situation.now
    yield from no_engine(situation)
    owner, expiry = job.lease_owner or "", job.lease_expiry or now
    last_seen = job.updated_at if known.worker is None else known.worker.last_seen
    details: dict[str, Json] = {
        "worker_id": owner,
        "attempt": job.attempt,
        "since": optional(known.leased_at),
        "lease_expiry": at(expiry),
        "last_seen": at(last_seen),
    }
    if expiry < now:
        yield Reason(
            ReasonCode.LEASE_OVERDUE,
            f"The lease of {owner} ran out {ago(expiry, now)}, and no engine has taken the job back yet. If "
            "this stays, `tidelog doctor` looks at the engine.",
            details,
        )
    elif now - last_seen > (expiry - last_seen) / 2:
        # A worker of ours renews at a third of the lease, so that two renewals may be lost.
        yield Reason(
            ReasonCode.WORKER_SILENT,
            f"{owner} has it (attempt {job.attempt}) and was last heard of {ago(last_seen, now)}. If it "
            f"stays silent, the job is taken back at {at(expiry)}, in {span(now, expiry)}.",
            details,
        )
    else:
        running = (
            "is running" if known.leased_at is None else f"has been running for {span(known.leased_at, now)}"
        )
        yield Reason(
            ReasonCode.RUNNING,
            f"It {running}: {owner} has it (attempt {job.attempt}), with a lease until {at(expiry)}; "
            f"it was last heard of {ago(last_seen, now)}.",
            details,
        )
    if job.cancel_requested:
        yield cancel_requested(situation, "the handler has not ended yet")


def cancel_requested(situation: Situation, consequence: str) -> Reason:
    """That somebody asked for an end, and what comes of it."""
    requests = situation.known.cancel_requests
    actor = requests[-1].actor if requests else None
    moment = requests[-1].at if requests else None
    return Reason(
        ReasonCode.CANCEL_REQUESTED,
        f"{actor or 'Somebody who left no name'} asked for it to stop{when(moment)}; {consequence}.",
        {"actor": actor, "at": optional(moment)},
    )
