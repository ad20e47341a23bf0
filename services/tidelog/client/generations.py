"""The order in which jobs of one batch can be sent when they name each other as parents.

A parent is sure to be known only to a child that is sent after the parent's enqueue was acknowledged
(contract section 3, Birth); so a batch goes out generation by generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from tidelog.client.errors import UnknownParent
from tidelog_events.identity import JobId


class Child(Protocol):
    """A job that may have parents."""

    @property
    def job_id(self) -> JobId: ...

    @property
    def parents(self) -> Sequence[JobId]: ...


ChildT = TypeVar("ChildT", bound=Child)


def generations(batch: Mapping[JobId, ChildT]) -> list[list[ChildT]]:
    """Split a batch so that the parents of a job that are in the batch all come in earlier generations.

    Within a generation jobs keep their order. Parents outside the batch are not looked at.

    Raises:
        UnknownParent: jobs wait for each other in a circle, so that none of them could be the first.
    """
    open_parents = {
        job_id: {parent for parent in job.parents if parent in batch} for job_id, job in batch.items()
    }
    children: dict[JobId, list[JobId]] = {}
    for job_id, parents in open_parents.items():
        for parent in parents:
            children.setdefault(parent, []).append(job_id)
    ready = [job_id for job_id, parents in open_parents.items() if not parents]
    ordered: list[list[ChildT]] = []
    rank = {job_id: index for index, job_id in enumerate(batch)}
    while ready:
        ordered.append([batch[job_id] for job_id in ready])
        freed: list[JobId] = []
        for parent in ready:
            del open_parents[parent]
            for child in children.get(parent, ()):
                open_parents[child].discard(parent)
                if not open_parents[child]:
                    freed.append(child)
        ready = sorted(freed, key=rank.__getitem__)
    if open_parents:
        stuck, parents = next(iter(open_parents.items()))
        raise UnknownParent(
            stuck, f"it waits, through {min(parents)}, for jobs that wait for each other. Nothing was sent."
        )
    return ordered
