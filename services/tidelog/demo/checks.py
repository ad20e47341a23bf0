"""The list of what must hold, each with whether it does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tidelog.demo.expect import Expected
from tidelog.demo.findings import Found
from tidelog.demo.jobs import CLOCK, DOOMED_ATTEMPTS, DOOMED_ERROR, FLAKY_FAILURES
from tidelog.demo.plan import OPERATOR, FileJob, Plan
from tidelog_events.identity import JobId, queue_of
from tidelog_events.states import JobState


@dataclass(frozen=True, slots=True)
class Check:
    """A sentence, whether it holds, and if it does not, what was found instead."""

    sentence: str
    holds: bool
    instead: str = ""


def check_all(
    plan: Plan, ticks: Collection[JobId], expected: Expected, found: Mapping[JobId, Found]
) -> list[Check]:
    """Every check, in the order in which they are shown. `ticks` are the jobs of the schedule."""
    planned = {job_id: job for job_id, job in found.items() if queue_of(job_id) != CLOCK}
    return [
        *_jobs(plan, planned),
        _clock(ticks, {job_id: job for job_id, job in found.items() if job_id not in planned}),
        *_files(plan, expected, found),
        *_folders(plan, expected, found),
        *_troubles(plan, found),
    ]


def _jobs(plan: Plan, found: Mapping[JobId, Found]) -> Iterator[Check]:
    planned = {job.job_id for job in plan.jobs}
    yield Check(
        f"Postgres has the {len(planned)} jobs that were enqueued, and no other",
        planned == found.keys(),
        f"{len(planned - found.keys())} are missing, {len(found.keys() - planned)} are others",
    )
    yield _each(
        "every job has ended",
        {job_id: str(job.state) for job_id, job in found.items() if not job.state.is_terminal},
    )


def _clock(ticks: Collection[JobId], found: Mapping[JobId, Found]) -> Check:
    wrong: dict[str, str] = {job_id: "not in Postgres" for job_id in ticks if job_id not in found}
    for job_id, job in found.items():
        if job_id not in ticks:
            wrong[job_id] = "one too many"
        elif job != Found(JobState.SUCCEEDED, 1, None, None):
            wrong[job_id] = str(job)
    return _each(
        f"a schedule has enqueued one job for each of {len(ticks)} seconds, until it was removed", wrong
    )


def _files(plan: Plan, expected: Expected, found: Mapping[JobId, Found]) -> Iterator[Check]:
    wrong: dict[str, str] = {}
    readable = 0
    for planned in plan.files:
        job_id = planned.job.job_id
        if job_id not in expected.files:
            continue
        digest, job = expected.files[job_id], found.get(job_id)
        readable += digest is not None
        fault = "not in Postgres" if job is None else _file_fault(planned, digest, job)
        if fault is not None:
            wrong[planned.name] = fault
    unreadable = len(expected.files) - readable
    also = f"; the jobs of {unreadable} unreadable ones are dead-lettered" if unreadable else ""
    yield _each(f"SHA-256 and size of {readable} files are those of the files themselves{also}", wrong)


def _file_fault(planned: FileJob, digest: str | None, job: Found) -> str | None:
    if digest is None:
        return None if job.state is JobState.DEAD_LETTERED else f"unreadable, and yet {job.state}"
    match job.output:
        case {"sha256": found, "size": size}:
            if found != digest:
                return f"the job has {found}, the file has {digest}"
            return None if size == planned.file.size else f"the job has {size} bytes"
    return f"{job.state}: {job.terminal_cause}"


def _folders(plan: Plan, expected: Expected, found: Mapping[JobId, Found]) -> Iterator[Check]:
    wrong: dict[str, str] = {}
    for planned in plan.folders:
        known, job = expected.folders.get(planned.job.job_id), found.get(planned.job.job_id)
        if known is None:
            continue
        match None if job is None else job.output:
            case {"digest": str(digest), "files": int(files), "unreadable": int(unreadable)}:
                if (digest, files, unreadable) != known:
                    wrong[planned.name] = (
                        f"{files} files, digest {digest}; it should be {known[1]}, {known[0]}"
                    )
            case _:
                wrong[planned.name] = "no output" if job is None else f"{job.state}: {job.terminal_cause}"
    yield _each(
        f"{len(expected.folders)} folder jobs have put together what their parents found, in their order",
        wrong,
    )


def _troubles(plan: Plan, found: Mapping[JobId, Found]) -> Iterator[Check]:
    troubles = plan.troubles
    wanted = [
        (
            f"a handler that fails {FLAKY_FAILURES} times succeeds at the next attempt",
            troubles.flaky.job_id,
            Found(JobState.SUCCEEDED, FLAKY_FAILURES + 1, None, FLAKY_FAILURES + 1),
        ),
        (
            f"one that always fails is dead-lettered after {DOOMED_ATTEMPTS} attempts, its error the cause",
            troubles.doomed.job_id,
            Found(JobState.DEAD_LETTERED, DOOMED_ATTEMPTS, f"RuntimeError: {DOOMED_ERROR}", None),
        ),
        (
            "a job that needs its success (OnSuccess) is cancelled without having run",
            troubles.cancelled_with_it.job_id,
            Found(JobState.CANCELLED, 0, "parent-failure:DeadLettered", None),
        ),
        (
            "one that needs only its end (OnAnyTerminal) runs",
            troubles.runs_after_it.job_id,
            Found(JobState.SUCCEEDED, 1, None, "ran"),
        ),
        (
            "a job that an operator cancels does not run, and names the operator",
            troubles.far_away.job_id,
            Found(JobState.CANCELLED, 0, OPERATOR, None),
        ),
    ]
    for sentence, job_id, right in wanted:
        yield Check(sentence, found.get(job_id) == right, f"{job_id} is {found.get(job_id)}")


_NAMED = 3


def _each(sentence: str, wrong: Mapping[str, str]) -> Check:
    """A check over many things; the first few that are wrong are named."""
    first = "; ".join(f"{name}: {why}" for name, why in list(wrong.items())[:_NAMED])
    return Check(sentence, not wrong, f"{len(wrong)} wrong: {first}")
