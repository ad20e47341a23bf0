"""The jobs of one `enqueue_many`: checked before anything is sent, distinct, in generations of parents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tidelog.client.generations import generations
from tidelog.client.newjob import NewJob, is_plain
from tidelog.handler.jobs import JobRequest
from tidelog_events.identity import JobId

Entry: TypeAlias = NewJob | JobRequest
"""A job, or a description that is sure to make one. Nobody knows the id of the latter yet, so it is nobody's
parent, and it is made at the moment at which it is sent."""


class Batch:
    """Jobs, each one once.

    Attributes:
        entries: the distinct jobs, in the order given. Of several with the same id the first counts.
        places: for each job that was given, its place among the entries.
        generations: places of entries; the parents of a job that are in the batch are in earlier ones.

    Raises:
        CommandRefused: as `NewJob`, for the first job that is refused.
        UnknownParent: jobs wait for each other in a circle.
        ValueError: two jobs have the same `command_id`.
    """

    def __init__(self, jobs: Iterable[JobRequest | NewJob]) -> None:
        self.entries: list[Entry] = []
        self.places: list[int] = []
        named: dict[JobId, int] = {}
        for job in jobs:
            entry = job if isinstance(job, NewJob) or is_plain(job) else NewJob(job)
            place = len(self.entries)
            if isinstance(entry, NewJob):
                place = named.setdefault(entry.job_id, place)
            if place == len(self.entries):
                self.entries.append(entry)
            self.places.append(place)
        self.generations = self._in_generations(named)

    def _in_generations(self, named: dict[JobId, int]) -> Sequence[Sequence[int]]:
        new = {entry.job_id: entry for entry in self.entries if isinstance(entry, NewJob)}
        if len({job.command_id for job in new.values()}) < len(new):
            raise ValueError(
                "two jobs of the batch have the same command_id; leave it out to have one minted"
            )
        later = [[named[job.job_id] for job in generation] for generation in generations(new)[1:]]
        of_later = {place for generation in later for place in generation}
        first = [place for place in range(len(self.entries)) if place not in of_later]
        return [first, *later] if first else []
