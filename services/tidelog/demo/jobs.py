"""The jobs of the demonstration, as any application would declare them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

from tidelog import App, JobContext, Retry, every
from tidelog.demo.kinds import kind_of
from tidelog_events.jsontext import Json

app = App()

FILES: Final = "files"
FOLDERS: Final = "folders"
TROUBLES: Final = "troubles"
CLOCK: Final = "clock"

FLAKY_FAILURES: Final = 2
DOOMED_ATTEMPTS: Final = 2
DOOMED_ERROR: Final = "this job fails on purpose"
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is known of a file. `size` is in bytes."""

    sha256: str
    size: int
    kind: str


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """What is known of a folder, or of a part of one with many entries.

    Attributes:
        digest: SHA-256 over the digests of its parts, in order, one a line; `-` for one without.
        files: how many were hashed.
        size: their bytes.
        unreadable: how many could not be.
    """

    digest: str
    files: int
    size: int
    unreadable: int


@app.job("hash-file", queue=FILES, retry=Retry(max_attempts=2, delays=[0.1]))
def hash_file(ctx: JobContext, uri: str) -> FileFacts:
    """Hash a file. A plain function: the worker runs it in a thread."""
    path = os.fsdecode(unquote_to_bytes(urlsplit(uri).path))
    hashed, size, head = hashlib.sha256(), 0, b""
    with open(path, "rb") as file:  # noqa: PTH123  the name may be no text that a Path could print
        while chunk := file.read(_CHUNK):
            ctx.raise_if_cancelled()
            head = head or chunk
            hashed.update(chunk)
            size += len(chunk)
    kind = kind_of(path, head)
    ctx.add_tag("kind", kind)
    return FileFacts(hashed.hexdigest(), size, kind)


@app.job("digest-folder", queue=FOLDERS, retry=Retry(max_attempts=3, delays=[0.5]))
async def digest_folder(ctx: JobContext, parts: list[str]) -> FolderFacts:
    """Put together what the parents of this job, files and folders, have found out."""
    outputs = await asyncio.gather(*(ctx.dependency_output(part) for part in parts))
    return _put_together(outputs)


def _put_together(outputs: list[Json]) -> FolderFacts:
    hashed, files, size, unreadable = hashlib.sha256(), 0, 0, 0
    for output in outputs:
        match output:
            case {"sha256": str(digest), "size": int(bytes_)}:
                files += 1
            case {"digest": str(digest), "files": int(inner), "size": int(bytes_), "unreadable": int(lost)}:
                files += inner
                unreadable += lost
            case _:  # the parent has ended without success
                digest, bytes_ = "-", 0
                unreadable += 1
        size += bytes_
        hashed.update(f"{digest}\n".encode())
    return FolderFacts(hashed.hexdigest(), files, size, unreadable)


@app.job("flaky", queue=TROUBLES, retry=Retry(max_attempts=5, delays=[0.1, 0.3]))
async def flaky(ctx: JobContext) -> int:
    """Fail twice, then succeed, and return the number of the attempt that did."""
    if ctx.attempt <= FLAKY_FAILURES:
        raise ConnectionError(f"attempt {ctx.attempt} fails on purpose")
    return ctx.attempt


@app.job("doomed", queue=TROUBLES, retry=Retry(max_attempts=DOOMED_ATTEMPTS, delays=[0.1]))
async def doomed() -> None:
    """Fail until the engine gives up."""
    raise RuntimeError(DOOMED_ERROR)


@app.job("after-doomed", queue=TROUBLES)
async def after_doomed() -> str:
    """Waits for the job that fails: run with one dependency mode, cancelled with the other."""
    return "ran"


@app.job("far-away", queue=TROUBLES)
async def far_away() -> None:
    """Due so late that an operator cancels it before it can run."""


@app.job("tick", queue=CLOCK)
async def tick() -> None:
    """Nobody enqueues it: a schedule does."""


EVERY_SECOND: Final = app.schedule(f"{CLOCK}/every-second", every(seconds=1), tick.job())
"""Put by the worker when it starts."""
