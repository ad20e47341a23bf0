"""What an answer is: reasons, the most decisive first, each a code, a sentence and what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tidelog_events.identity import JobId
from tidelog_events.instants import Instant, format_instant
from tidelog_events.jsontext import Json
from tidelog_events.states import JobState


class ReasonCode(StrEnum):
    """Why a job is not running, or that it is. More may come: of one that you don't know, show the sentence.

    Beside each: what its `details` hold.
    """

    UNKNOWN_JOB = "unknown_job"
    """There is no job of that id."""
    PURGED = "purged"
    """There was one; the archive has it. `state`, `terminal_at`, `terminal_cause`, `purged_at`."""
    NO_ENGINE = "no_engine"
    """Nobody decides for the job's partition. `partition`."""
    QUEUE_PAUSED = "queue_paused"
    """`queue`, `paused_by`, `paused_at`."""
    NOT_DUE = "not_due"
    """`due_time`, `attempt`, and `last_error` when it is a retry."""
    AWAITING_PARENTS = "awaiting_parents"
    """`parents_remaining`, `parents`: [{`job_id`, `state`}], those that have not ended."""
    LIMIT_REACHED = "limit_reached"
    """`queue`, `limit`, `leased`, `jobs`: [{`job_id`, `worker_id`, `lease_expiry`}], the first 16 to end."""
    NO_WORKER = "no_worker"
    """No worker asks for jobs of the queue: none serves it, or those are busy with other queues. `queue`,
    `within_seconds`, `other_workers`: those heard of."""
    WORKERS_BUSY = "workers_busy"
    """Those that serve the queue have no free slot. `queue`, `workers`."""
    SOON = "soon"
    """It is due and waits for a free slot, behind the jobs before it. `queue`, `ahead`, `due_time`."""
    RUNNING = "running"
    """A worker has it. `worker_id`, `attempt`, `since`, `lease_expiry`, `last_seen` of the worker."""
    WORKER_SILENT = "worker_silent"
    """Its worker does not renew the lease. `worker_id`, `attempt`, `last_seen`, `lease_expiry`."""
    LEASE_OVERDUE = "lease_overdue"
    """The lease has run out, and no engine has decided so. `worker_id`, `lease_expiry`."""
    CANCEL_REQUESTED = "cancel_requested"
    """Somebody asked its worker to stop. `actor`, `at`."""
    ENDED = "ended"
    """`state`, `terminal_at`, `terminal_cause`."""
    PROJECTION_BEHIND = "projection_behind"
    """Postgres lacks events, so that the answer may be old. `partition`, `events`, `oldest`."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason.

    Attributes:
        code: for programs.
        sentence: for people, with what to do where something is to be done.
        details: what it is about, as its code says; times as RFC 3339.
    """

    code: ReasonCode
    sentence: str
    details: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Why:
    """The answer.

    Attributes:
        job_id: of which job.
        state: None when there is no such job (any more).
        as_of: when it was looked at.
        reasons: all that hold, the most decisive first; never empty.
    """

    job_id: JobId
    state: JobState | None
    as_of: Instant
    reasons: tuple[Reason, ...]

    @property
    def code(self) -> ReasonCode:
        """Of the most decisive reason."""
        return self.reasons[0].code

    @property
    def sentence(self) -> str:
        """Of the most decisive reason."""
        return self.reasons[0].sentence

    def has(self, code: ReasonCode) -> bool:
        """Whether that reason is among them."""
        return any(reason.code is code for reason in self.reasons)

    def to_json(self) -> dict[str, Json]:
        """As `tidelog why --json` prints it."""
        reasons: list[Json] = [
            {"code": reason.code.value, "sentence": reason.sentence, "details": dict(reason.details)}
            for reason in self.reasons
        ]
        return {
            "job_id": self.job_id,
            "state": None if self.state is None else self.state.value,
            "as_of": format_instant(self.as_of),
            "reasons": reasons,
        }
