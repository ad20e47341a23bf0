"""A check that does not hold is seen, and says what was found instead."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tidelog.demo.checks import Check, check_all
from tidelog.demo.clock import ticks_between
from tidelog.demo.expect import expect
from tidelog.demo.findings import Found
from tidelog.demo.plan import Plan, make_plan
from tidelog.demo.tree import survey
from tidelog_events.identity import JobId
from tidelog_events.instants import parse_instant
from tidelog_events.states import JobState

Findings = dict[JobId, Found]
FILE = JobId("files/file-00001")
UNREADABLE = JobId("files/file-00002")
FOLDER = JobId("folders/folder-00001")
TICKS = [JobId("clock/every-second@20261130T093000Z"), JobId("clock/every-second@20261130T093001Z")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two files; the second one will be unreadable."""
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").write_bytes(b"secret")
    return tmp_path


def hasher(path: Path) -> str:
    """Hashes, and cannot read `b`."""
    if path.name == "b":
        raise PermissionError("no")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def right() -> Findings:
    """What Postgres holds when all went well."""
    digest = hashlib.sha256(b"content").hexdigest()
    whole = hashlib.sha256(f"{digest}\n-\n".encode()).hexdigest()
    ok, dead, off = JobState.SUCCEEDED, JobState.DEAD_LETTERED, JobState.CANCELLED
    return {
        FILE: Found(ok, 1, None, {"sha256": digest, "size": 7, "kind": "text"}),
        UNREADABLE: Found(dead, 2, "PermissionError: no", None),
        FOLDER: Found(ok, 1, None, {"digest": whole, "files": 1, "size": 7, "unreadable": 1}),
        JobId("troubles/flaky"): Found(ok, 3, None, 3),
        JobId("troubles/doomed"): Found(dead, 2, "RuntimeError: this job fails on purpose", None),
        JobId("troubles/needs-success"): Found(off, 0, "parent-failure:DeadLettered", None),
        JobId("troubles/needs-an-end"): Found(ok, 1, None, "ran"),
        JobId("troubles/far-away"): Found(off, 0, "operator", None),
        **dict.fromkeys(TICKS, Found(ok, 1, None, None)),
    }


def checks(folder: Path, found: Findings) -> tuple[Plan, list[Check]]:
    """All checks of the folder against what was found."""
    plan = make_plan(folder, survey(folder))
    return plan, check_all(plan, TICKS, expect(plan, hasher), found)


def test_all_hold_when_all_is_right(folder: Path) -> None:
    plan, made = checks(folder, right())
    assert right().keys() == {job.job_id for job in plan.jobs} | set(TICKS)
    assert [check for check in made if not check.holds] == []
    assert len(made) == 10


def without(job_id: JobId) -> Callable[[Findings], None]:
    """A job is missing."""

    def change(found: Findings) -> None:
        del found[job_id]

    return change


def with_output(job_id: JobId, **fields: str | int) -> Callable[[Findings], None]:
    """A job has another output."""

    def change(found: Findings) -> None:
        output = found[job_id].output
        assert isinstance(output, dict)
        found[job_id] = replace(found[job_id], output={**output, **fields})

    return change


def with_state(job_id: JobId, state: JobState) -> Callable[[Findings], None]:
    """A job is in another state."""

    def change(found: Findings) -> None:
        found[job_id] = replace(found[job_id], state=state, output=None)

    return change


def with_another_tick(found: Findings) -> None:
    """The schedule went on."""
    found[JobId("clock/every-second@20261130T093002Z")] = found[TICKS[0]]


def test_the_ticks_are_the_full_seconds_from_the_put_on_to_the_removal() -> None:
    put_at, removed_at = map(parse_instant, ("2026-11-30T09:29:59.5Z", "2026-11-30T09:30:01Z"))
    assert ticks_between(put_at, removed_at) == TICKS
    assert ticks_between(parse_instant("2026-11-30T09:30:00Z"), removed_at) == TICKS[1:]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (without(FILE), "Postgres has"),
        (without(FILE), "SHA-256"),
        (with_output(FILE, sha256="0" * 64), "SHA-256"),
        (with_output(FILE, size=8), "SHA-256"),
        (with_state(UNREADABLE, JobState.SUCCEEDED), "SHA-256"),
        (with_state(FILE, JobState.LEASED), "every job has ended"),
        (with_output(FOLDER, digest="0" * 64), "folder jobs"),
        (with_output(FOLDER, unreadable=0), "folder jobs"),
        (without(FOLDER), "folder jobs"),
        (without(TICKS[0]), "a schedule has enqueued"),
        (with_state(TICKS[1], JobState.DEAD_LETTERED), "a schedule has enqueued"),
        (with_another_tick, "a schedule has enqueued"),
        (with_state(JobId("troubles/flaky"), JobState.DEAD_LETTERED), "fails 2 times"),
        (with_state(JobId("troubles/doomed"), JobState.SUCCEEDED), "always fails"),
        (with_state(JobId("troubles/needs-success"), JobState.SUCCEEDED), "OnSuccess"),
        (with_state(JobId("troubles/needs-an-end"), JobState.CANCELLED), "OnAnyTerminal"),
        (with_state(JobId("troubles/far-away"), JobState.SUCCEEDED), "an operator cancels"),
    ],
)
def test_what_is_wrong_is_seen(folder: Path, change: Callable[[Findings], None], sentence: str) -> None:
    found = right()
    change(found)
    failed = [check for check in checks(folder, found)[1] if not check.holds]
    assert any(sentence in check.sentence and check.instead for check in failed), failed


def test_a_file_that_changed_is_not_spoken_of(folder: Path) -> None:
    plan = make_plan(folder, survey(folder))
    (folder / "a").write_bytes(b"something longer")
    expected = expect(plan, hasher)
    assert [planned.name for planned in expected.changed] == ["a"]
    assert FILE not in expected.files
    assert FOLDER not in expected.folders
