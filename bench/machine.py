"""The facts without which a figure says nothing: the machine, the software, and what else was going on."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("tidelog", "orjson", "pydantic", "pydantic-core", "aiokafka")
_GIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and with what was measured.

    Attributes:
        cores: that this process may use.
        memory_mib: of the machine; None where it is not told.
        load: how many processes wanted to run in the last 1, 5 and 15 minutes, before the first measure.
        packages: versions, of those that are installed.
        revision: of the git checkout, with `+changes` when it is not what was committed; None without one.
    """

    cpu: str
    cores: int
    memory_mib: int | None
    kernel: str
    python: str
    packages: Mapping[str, str]
    load: tuple[float, float, float]
    revision: str | None


def look() -> Machine:
    """The facts as they are now."""
    return Machine(
        cpu=_fact("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_mib=_memory_mib(),
        kernel=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages={"sqlite": sqlite3.sqlite_version, **_versions()},
        load=os.getloadavg(),
        revision=_revision(),
    )


def _fact(path: str, name: str) -> str | None:
    """The first value of that name in a file of `name: value` lines; None when there is none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), None)


def _memory_mib() -> int | None:
    total = _fact("/proc/meminfo", "MemTotal")
    return None if total is None else int(total.split()[0]) // 1024


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _revision() -> str | None:
    revision = _git("rev-parse", "--short=12", "HEAD")
    if revision is None:
        return None
    return f"{revision}+changes" if _git("status", "--porcelain") else revision


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are those above
            ["git", "-C", str(_ROOT), *arguments],  # noqa: S607 - whichever git the user has
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
