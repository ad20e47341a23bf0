"""The seven states of a job, their frozen ordinals, and the steps between them (contract section 4)."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job is in its life."""

    SCHEDULED = "Scheduled"
    AWAITING_PARENT = "AwaitingParent"
    LEASED = "Leased"
    SUCCEEDED = "Succeeded"
    CANCELLED = "Cancelled"
    DEAD_LETTERED = "DeadLettered"
    QUARANTINED = "Quarantined"

    @property
    def ordinal(self) -> int:
        """The frozen number of the state, for storage that wants one."""
        return STATE_ORDINALS[self]

    # A member equals its text, so it may have its hash: that of `Enum` is written in Python, and every look
    # into a set or a table of states would run it.
    __hash__ = str.__hash__

    @property
    def is_terminal(self) -> bool:
        """Whether a job in this state has ended (a requeue may still start a new life)."""
        return self in TERMINAL_STATES


STATE_ORDINALS = {
    JobState.SCHEDULED: 0,
    JobState.AWAITING_PARENT: 1,
    JobState.LEASED: 2,
    JobState.SUCCEEDED: 3,
    JobState.CANCELLED: 4,
    JobState.DEAD_LETTERED: 5,
    JobState.QUARANTINED: 6,
}
"""Frozen: they stand in databases (contract section 4)."""

TERMINAL_STATES = frozenset(
    {JobState.SUCCEEDED, JobState.CANCELLED, JobState.DEAD_LETTERED, JobState.QUARANTINED}
)

REQUEUEABLE_STATES = frozenset({JobState.DEAD_LETTERED, JobState.QUARANTINED})


class DependencyMode(StrEnum):
    """What a job asks of its parents."""

    ON_SUCCESS = "OnSuccess"
    """All of them must succeed; one that ends otherwise cancels the job at once."""
    ON_ANY_TERMINAL = "OnAnyTerminal"
    """All of them must end, in whatever state."""


class CatchUp(StrEnum):
    """What becomes of the ticks of a schedule that nobody was there to mint."""

    SKIP = "Skip"
    """They are recorded and nothing else."""
    COALESCE = "Coalesce"
    """The latest of them is made up for."""


LEGAL_STEPS: frozenset[tuple[JobState | None, JobState]] = frozenset(
    {
        (None, JobState.SCHEDULED),
        (None, JobState.AWAITING_PARENT),
        (None, JobState.CANCELLED),
        (JobState.AWAITING_PARENT, JobState.SCHEDULED),
        (JobState.AWAITING_PARENT, JobState.CANCELLED),
        (JobState.SCHEDULED, JobState.LEASED),
        (JobState.SCHEDULED, JobState.CANCELLED),
        (JobState.LEASED, JobState.SUCCEEDED),
        (JobState.LEASED, JobState.SCHEDULED),
        (JobState.LEASED, JobState.DEAD_LETTERED),
        (JobState.LEASED, JobState.CANCELLED),
        (JobState.LEASED, JobState.QUARANTINED),
        (JobState.DEAD_LETTERED, JobState.SCHEDULED),
        (JobState.QUARANTINED, JobState.SCHEDULED),
    }
)
"""Every step that a transition with an ordinal may make; None is the state before birth."""
