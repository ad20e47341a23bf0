"""The files of a folder, as far as the demonstration goes into it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidelog.cli.exits import WrongUse

MAX_FILES: Final = 5_000
MAX_FILE_BYTES: Final = 64 << 20
MAX_BYTES: Final = 1 << 30
"""Beyond these files are left out, and that is said: a demonstration of the whole disk would be none."""

_LEFT_OUT: Final = frozenset(
    {
        ".cache",
        ".demo",
        ".eggs",
        ".git",
        ".hg",
        ".hypothesis",
        ".idea",
        ".import_linter_cache",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".tidelog",
        ".tox",
        ".venv",
        "__pycache__",
        "build",
        "dist",
        "node_modules",
        "venv",
    }
)


class NotAFolder(WrongUse):
    """The demonstration was asked to work on something that is no readable folder."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, with its size in bytes and the time of its last change in nanoseconds when it was found."""

    path: Path
    size: int
    changed: int

    def is_unchanged(self) -> bool:
        """Whether it is still the file that was found."""
        try:
            now = self.path.stat(follow_symlinks=False)
        except OSError:
            return False
        return (now.st_size, now.st_mtime_ns) == (self.size, self.changed)


@dataclass(slots=True)
class FoundFolder:
    """A folder and what is in it, sorted by name."""

    path: Path
    files: list[FoundFile] = field(default_factory=list)
    folders: list[FoundFolder] = field(default_factory=list)


@dataclass(slots=True)
class Survey:
    """What was found under a folder.

    Attributes:
        folders: all of them, each after those in it; the last one is the folder itself.
        left_out: why something was left out, and how often.
    """

    folders: list[FoundFolder] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    files: int = 0
    size: int = 0


def survey(root: Path) -> Survey:
    """Look through a folder. Symbolic links are not followed, so that nothing is met twice.

    Raises:
        NotAFolder: it is none, or it cannot be read.
    """
    try:
        entries = _entries(root)
    except OSError as error:
        raise NotAFolder(f"{str(root)!r} cannot be read as a folder: {error.strerror}") from error
    found = Survey()
    stack = [(FoundFolder(root), entries)]
    while stack:
        folder, left = stack[-1]
        if not left:
            found.folders.append(folder)
            stack.pop()
            continue
        entry = left.pop()
        try:
            deeper = _take(entry, folder, found)
        except OSError:
            found.left_out["unreadable folders or entries"] += 1
            continue
        if deeper is not None:
            folder.folders.append(deeper[0])
            stack.append(deeper)
    return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, the last name first: it is used as a stack."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: os.fsencode(entry.name), reverse=True)


def _take(
    entry: os.DirEntry[str], folder: FoundFolder, found: Survey
) -> tuple[FoundFolder, list[os.DirEntry[str]]] | None:
    """Add a file to its folder; a folder is returned, to be gone into."""
    path = Path(entry.path)
    if entry.is_symlink():
        found.left_out["symbolic links"] += 1
    elif entry.is_dir():
        if entry.name in _LEFT_OUT or entry.name.endswith(".egg-info"):
            found.left_out["caches, environments and the like"] += 1
        else:
            return FoundFolder(path), _entries(path)
    elif not entry.is_file():
        found.left_out["devices, pipes and sockets"] += 1
    else:
        stat = entry.stat(follow_symlinks=False)
        if stat.st_size > MAX_FILE_BYTES:
            found.left_out[f"files above {MAX_FILE_BYTES >> 20} MiB"] += 1
        elif found.files >= MAX_FILES or found.size + stat.st_size > MAX_BYTES:
            found.left_out[f"files beyond {MAX_FILES} or {MAX_BYTES >> 30} GiB in all"] += 1
        else:
            folder.files.append(FoundFile(path, stat.st_size, stat.st_mtime_ns))
            found.files += 1
            found.size += stat.st_size
    return None
