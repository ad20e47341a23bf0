"""The handlers of the demonstration, called as the functions that they are."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import orjson
import pytest
from tests.worker.grants import granted

from tidelog import JobContext
from tidelog.demo.jobs import FileFacts, FolderFacts, digest_folder, hash_file
from tidelog.demo.plan import make_plan
from tidelog.demo.tree import survey
from tidelog_events.identity import JobId
from tidelog_events.jsontext import JsonBytes


def context(outputs: dict[str, JsonBytes] | None = None) -> JobContext:
    """What a worker would hand to a handler."""

    async def read(job_id: JobId) -> JsonBytes:
        return (outputs or {})[job_id]

    return JobContext(granted(JobId("q/k"), 1), read_output=read)


@pytest.mark.parametrize("name", [b"plain.py", b"per%20cent ?#", b"no \xff text", b"line\nbreak"])
def test_a_file_is_found_by_the_uri_of_the_plan(tmp_path: Path, name: bytes) -> None:
    (tmp_path / os.fsdecode(name)).write_bytes(b"content")
    [planned] = make_plan(tmp_path, survey(tmp_path)).files
    uri = orjson.loads(planned.job.encoded(None))["payload"]["uri"]
    facts = hash_file(context(), uri)
    kind = "python" if name.endswith(b".py") else "text"
    assert facts == FileFacts(hashlib.sha256(b"content").hexdigest(), 7, kind)


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hash_file(context(), f"file://{tmp_path}/none")


def test_a_hash_stops_when_it_is_cancelled(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    stopped = context()
    stopped.cancelled.set()
    with pytest.raises(asyncio.CancelledError):
        hash_file(stopped, f"file://{tmp_path}/file")


async def test_a_folder_counts_what_could_not_be_read() -> None:
    outputs = {
        "files/a": orjson.dumps(FileFacts("aa", 3, "text")),
        "files/b": b"null",
        "folders/c": orjson.dumps(FolderFacts("cc", 2, 10, 4)),
    }
    facts = await digest_folder(context(outputs), list(outputs))
    assert facts == FolderFacts(hashlib.sha256(b"aa\n-\ncc\n").hexdigest(), 3, 13, 5)
