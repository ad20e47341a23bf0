"""What must come out, worked out from the files themselves and not by the code of the jobs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tidelog.demo.plan import FileJob, FolderJob, Plan
from tidelog_events.identity import JobId

Hasher: TypeAlias = Callable[[Path], str]
"""The SHA-256 of a file as hex. Raises `OSError` when it cannot be read."""


def hash_path(path: Path) -> str:
    """The SHA-256 of a file as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(slots=True)
class Expected:
    """What the jobs over files and folders must have found.

    Attributes:
        files: the hash by job; None where the file cannot be read.
        folders: digest, number of files and number of unreadable ones by job.
        changed: files that changed meanwhile: nothing can be said of them and of the folders they are in.
    """

    files: dict[JobId, str | None] = field(default_factory=dict)
    folders: dict[JobId, tuple[str, int, int]] = field(default_factory=dict)
    changed: list[FileJob] = field(default_factory=list)


def expect(plan: Plan, hasher: Hasher = hash_path) -> Expected:
    """Read every file again."""
    expected = Expected()
    for planned in plan.files:
        try:
            digest = hasher(planned.file.path)
        except OSError:
            digest = None
        if planned.file.is_unchanged():
            expected.files[planned.job.job_id] = digest
        else:
            expected.changed.append(planned)
    for folder in plan.folders:  # parts come before what is made of them
        if all(_is_known(part, expected) for part in folder.parts):
            expected.folders[folder.job.job_id] = _folder(folder, expected)
    return expected


def _is_known(part: FileJob | FolderJob, expected: Expected) -> bool:
    return part.job.job_id in (expected.files if isinstance(part, FileJob) else expected.folders)


def _folder(folder: FolderJob, expected: Expected) -> tuple[str, int, int]:
    lines: list[str] = []
    files = unreadable = 0
    for part in folder.parts:
        if isinstance(part, FolderJob):
            digest, inner, lost = expected.folders[part.job.job_id]
            files += inner
            unreadable += lost
            lines.append(digest)
            continue
        known = expected.files[part.job.job_id]
        files += known is not None
        unreadable += known is None
        lines.append(known or "-")
    text = "".join(f"{line}\n" for line in lines)
    return hashlib.sha256(text.encode()).hexdigest(), files, unreadable
