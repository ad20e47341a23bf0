"""Journals on disk, to which several processes append: a line is one write, and outlives whoever wrote it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import orjson

from tidelog_events.identity import JobId, Partition, Sequence


class Ending(StrEnum):
    """How a handler ended."""

    RETURNED = "returned"
    RAISED = "raised"
    STOPPED = "stopped"
    """The worker asked it to stop."""


@dataclass(frozen=True, slots=True)
class Run:
    """A handler that began. `ending` is None when its process was killed meanwhile."""

    job_id: JobId
    attempt: int
    pid: int
    ending: Ending | None


Delivery = tuple[Partition, Sequence]
"""A transition that an observer was told of, by its place in the log."""


class Journal:
    """One journal: of what clients sent and heard, of what handlers did, or of what observers were told."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def sent(self, job_ids: Iterable[JobId]) -> None:
        """These are about to be enqueued."""
        self._write(*({"what": "sent", "job": job_id} for job_id in job_ids))

    def acknowledged(self, job_ids: Iterable[JobId]) -> None:
        """An engine has accepted these."""
        self._write(*({"what": "acknowledged", "job": job_id} for job_id in job_ids))

    def began(self, job_id: JobId, attempt: int, pid: int) -> None:
        """A handler begins."""
        self._write({"what": "began", "job": job_id, "attempt": attempt, "pid": pid})

    def ended(self, job_id: JobId, attempt: int, pid: int, ending: Ending) -> None:
        """A handler has ended."""
        self._write({"what": ending.value, "job": job_id, "attempt": attempt, "pid": pid})

    def delivered(self, partition: Partition, sequence: Sequence) -> None:
        """An observer was told of this transition."""
        self._write({"what": "delivered", "partition": partition, "sequence": sequence})

    def deliveries(self) -> list[Delivery]:
        """All that observers were told, in order."""
        return [
            (Partition(int(line["partition"])), Sequence(int(line["sequence"]))) for line in self._lines()
        ]

    def jobs(self, what: str) -> frozenset[JobId]:
        """The jobs that were `sent` or `acknowledged`."""
        return frozenset(JobId(line["job"]) for line in self._lines() if line["what"] == what)

    def runs(self) -> list[Run]:
        """Every run of a handler, in the order in which they began."""
        begun: list[tuple[JobId, int, int]] = []
        endings: dict[tuple[JobId, int, int], Ending] = {}
        for line in self._lines():
            run = (JobId(line["job"]), int(line["attempt"]), int(line["pid"]))
            if line["what"] == "began":
                begun.append(run)
            else:
                endings[run] = Ending(line["what"])
        return [Run(*run, endings.get(run)) for run in begun]

    def _write(self, *lines: Mapping[str, str | int]) -> None:
        text = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if os.write(file, text) != len(text):
                raise OSError(f"{self._path} took only a part of a line")
        finally:
            os.close(file)

    def _lines(self) -> list[dict[str, str]]:
        if not self._path.exists():
            return []
        return [orjson.loads(line) for line in self._path.read_bytes().splitlines()]
