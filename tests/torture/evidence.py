"""What a run leaves behind, and what an audit is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.torture.journal import Delivery, Run

from tidelog_events.identity import JobId, Partition
from tidelog_events.transitions import Transition

Row = Mapping[str, object]
"""A row of Postgres, by column."""

Depths = Mapping[tuple[str, str], int]
"""How many jobs there are, by queue and state."""


Step = tuple[int, str, int]
"""A step of a job in Postgres: its ordinal, its type, and the sequence of the event."""

Tags = Sequence[tuple[str, str | None]]
"""The tags of a job, in order; a label has no value."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run leaves behind.

    Attributes:
        events: the transitions, by partition, in the order of the log.
        sent: the jobs that clients tried to enqueue.
        acknowledged: those that a client was told were accepted.
        runs: of handlers, from their own journal.
        deliveries: of transitions to the observer, in order.
        rows: the table `jobs`.
        steps: the table `job_transitions`, by job, in order.
        tags: the table `job_tags`, by job, in order.
        parents: the table `job_dependencies`, by job, in order.
        depths: the table `queue_depths`.
        counted: the same, counted over `jobs`.
        partitions: how many the log has.
    """

    events: Mapping[Partition, Sequence[Transition]]
    sent: frozenset[JobId]
    acknowledged: frozenset[JobId]
    runs: Sequence[Run]
    deliveries: Sequence[Delivery]
    rows: Mapping[JobId, Row]
    steps: Mapping[JobId, Sequence[Step]]
    tags: Mapping[JobId, Tags]
    parents: Mapping[JobId, Sequence[str]]
    depths: Depths
    counted: Depths
    partitions: int
