"""From files and folders to jobs that wait for each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote_from_bytes

from tidelog import DependencyMode, JobRequest, NewJob
from tidelog.demo import jobs
from tidelog.demo.tree import FoundFile, Survey
from tidelog_events.bounds import MAX_PARENTS, MAX_TAG_CHARS
from tidelog_events.identity import JobId

OPERATOR: Final = "operator"
_FAR_AWAY_SECONDS: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class FileJob:
    """A file, and the job that hashes it."""

    name: str
    file: FoundFile
    job: NewJob


@dataclass(frozen=True, slots=True)
class FolderJob:
    """A folder (or a part of one with many entries), and the job that puts its parts together."""

    name: str
    parts: tuple[Part, ...]
    job: NewJob


Part: TypeAlias = FileJob | FolderJob


@dataclass(frozen=True, slots=True)
class Troubles:
    """Jobs for which not everything goes well."""

    flaky: NewJob
    doomed: NewJob
    cancelled_with_it: NewJob
    runs_after_it: NewJob
    far_away: NewJob

    @property
    def all(self) -> list[NewJob]:
        """All of them, parents first."""
        return [self.flaky, self.doomed, self.cancelled_with_it, self.runs_after_it, self.far_away]


@dataclass(slots=True)
class Plan:
    """Every job of a demonstration. Folders come after their parts."""

    files: list[FileJob] = field(default_factory=list)
    folders: list[FolderJob] = field(default_factory=list)
    troubles: Troubles = field(default_factory=lambda: _troubles())

    @property
    def jobs(self) -> list[NewJob]:
        """All jobs, parents first."""
        files = [planned.job for planned in self.files]
        folders = [planned.job for planned in self.folders]
        return files + folders + self.troubles.all


def make_plan(root: Path, found: Survey) -> Plan:
    """A job for each file, one for each folder after those in it, and the troubles."""
    plan = Plan()
    made: dict[Path, FolderJob] = {}
    for folder in found.folders:
        parts: list[Part] = [_file_job(plan, root, file) for file in folder.files]
        parts += [made[inner.path] for inner in folder.folders]
        made[folder.path] = _folder_job(plan, _name(root, folder.path), parts)
    return plan


def _file_job(plan: Plan, root: Path, file: FoundFile) -> FileJob:
    name = _name(root, file.path)
    job = NewJob(
        jobs.hash_file.job(uri=f"file://{quote_from_bytes(os.fsencode(file.path))}"),
        key=f"file-{len(plan.files) + 1:05}",
        tags=[("path", _tag(name))],
        actor=OPERATOR,
    )
    planned = FileJob(name, file, job)
    plan.files.append(planned)
    return planned


def _folder_job(plan: Plan, name: str, parts: Sequence[Part]) -> FolderJob:
    """A job over parts; where there are more than a job may have parents, over jobs over some of them."""
    while len(parts) > MAX_PARENTS:
        parts = [
            _digest_job(plan, f"{name} (part)", parts[start : start + MAX_PARENTS])
            for start in range(0, len(parts), MAX_PARENTS)
        ]
    return _digest_job(plan, name, parts)


def _digest_job(plan: Plan, name: str, parts: Sequence[Part]) -> FolderJob:
    ids = [part.job.job_id for part in parts]
    # A file may turn out to be unreadable, which is no reason to know nothing of its folder.
    has_files = any(isinstance(part, FileJob) for part in parts)
    job = NewJob(
        jobs.digest_folder.job(parts=list[str](ids)),
        key=f"folder-{len(plan.folders) + 1:05}",
        parents=ids,
        mode=DependencyMode.ON_ANY_TERMINAL if has_files else DependencyMode.ON_SUCCESS,
        tags=[("path", _tag(name))],
        actor=OPERATOR,
    )
    planned = FolderJob(name, tuple(parts), job)
    plan.folders.append(planned)
    return planned


def _troubles() -> Troubles:
    def trouble(
        request: JobRequest,
        key: str,
        *,
        parents: Sequence[JobId] = (),
        mode: DependencyMode = DependencyMode.ON_SUCCESS,
        delay: float | None = None,
    ) -> NewJob:
        return NewJob(request, key=key, parents=parents, mode=mode, delay=delay, actor=OPERATOR)

    doomed = trouble(jobs.doomed.job(), "doomed")
    after = [doomed.job_id]
    return Troubles(
        flaky=trouble(jobs.flaky.job(), "flaky"),
        doomed=doomed,
        cancelled_with_it=trouble(jobs.after_doomed.job(), "needs-success", parents=after),
        runs_after_it=trouble(
            jobs.after_doomed.job(), "needs-an-end", parents=after, mode=DependencyMode.ON_ANY_TERMINAL
        ),
        far_away=trouble(jobs.far_away.job(), "far-away", delay=_FAR_AWAY_SECONDS),
    )


def _name(root: Path, path: Path) -> str:
    """A path under the root, as text: what is no text in it is percent-encoded, as in the job's URI."""
    raw = os.fsencode(path.relative_to(root))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(raw)


def _tag(name: str) -> str:
    """The end of a long path says more than its beginning."""
    return name if len(name) <= MAX_TAG_CHARS else f"…{name[-(MAX_TAG_CHARS - 1) :]}"
