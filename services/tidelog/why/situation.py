"""What has to be known to answer: the job's circumstances, and who serves its partition and its queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidelog.inspection.freshness import Behind
from tidelog.inspection.presence import Presence
from tidelog_events.identity import JobId, Partition
from tidelog_events.instants import Instant
from tidelog_projections.circumstances import Circumstances


class Engine(Enum):
    """Whether somebody decides for the partition."""

    THERE = "there"
    NONE = "none"
    CHANGING = "changing"
    """The engines share out their partitions just now."""
    NOT_KNOWN = "not known"
    """The log does not let us look at its groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A job, and all that may be in its way.

    Attributes:
        now: when it was looked at.
        job_id, partition: of which job, and where that lives.
        known: what Postgres knows.
        behind: what Postgres lacks of the log; None when it has everything.
        engine: whether somebody decides for the partition.
        presence: the workers that were heard of there; None when the answer needs none.
    """

    now: Instant
    job_id: JobId
    partition: Partition
    known: Circumstances
    behind: Behind | None
    engine: Engine
    presence: Presence | None
