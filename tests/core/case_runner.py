"""Runs conformance cases through `tidelog replay` and checks what it prints (`tests/cases/README.md`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.core.case_patterns import difference, fits, short
from tests.core.case_script import BadCase, Value, a_list, a_number, an_object, expand, lines_of
from typer.testing import CliRunner

from tidelog.cli.commands import app
from tidelog_events.instants import NotAnInstant, parse_instant
from tidelog_events.states import LEGAL_STEPS, JobState

Case = dict[str, Value]
KINDS: Final = ("transition", "reply", "job")
REQUIRED: Final = {"id", "title", "script"}
CHECKS: Final = {
    "expect",
    "contains",
    "never",
    "count",
    "history",
    "state",
    "absent",
    "exit",
    "stderr_contains",
    "any_of",
}
KEYS: Final = REQUIRED | CHECKS | {"why", "args", "twice"}


class Mismatch(AssertionError):
    """The first thing about a case that does not hold."""


def load(folder: Path) -> list[Case]:
    """The cases of all files of a folder, in order. Raises `BadCase`."""
    cases = [
        an_object(case)
        for file in sorted(folder.glob("*.json"))
        for case in a_list(json.loads(file.read_text(encoding="utf-8")))
    ]
    for case in cases:
        if not REQUIRED <= case.keys() <= KEYS:
            raise BadCase(f"case {case.get('id')}: keys {sorted(case)}; allowed are {sorted(KEYS)}")
    if len({str(case["id"]) for case in cases}) < len(cases):
        raise BadCase("an id is used twice")
    return cases


@dataclass(frozen=True, slots=True)
class Printed:
    """What `tidelog replay` left behind."""

    exit_code: int
    lines: list[dict[str, Value]]
    stderr: str

    def of(self, kind: str) -> list[dict[str, Value]]:
        """The contents of all lines of a kind, in order."""
        return [an_object(line[kind]) for line in self.lines if kind in line]

    def history(self, job_id: str) -> list[Value]:
        """The steps of a job as `[type, state, attempt]`."""
        return [
            [event.get("type"), event.get("state"), event.get("attempt")]
            for event in self.of("transition")
            if event.get("job_id") == job_id and event.get("ordinal") is not None
        ]

    @property
    def jobs(self) -> dict[str, Value]:
        """The records by job id."""
        return {str(job["job_id"]): job for job in self.of("job")}


def run(case: Case) -> None:
    """Run one case. Raises `Mismatch` with the first thing that does not hold."""
    script = ("\n".join(lines_of(case["script"])) + "\n").encode("utf-8", "surrogatepass")
    arguments = ["replay", "-", "--state", *map(str, a_list(case.get("args", [])))]
    result = CliRunner().invoke(app, arguments, input=script)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    printed = Printed(result.exit_code, _read(result.stdout_bytes), result.stderr)
    _check_the_house_rules(printed)
    if case.get("twice"):
        _check_that_hashes_do_not_matter(arguments, script, result.stdout_bytes)
    checks = an_object(expand({key: part for key, part in case.items() if key in CHECKS}, {}))
    _check_any(checks, printed)


def _read(stdout: bytes) -> list[dict[str, Value]]:
    lines = [an_object(json.loads(line)) for line in stdout.decode().splitlines() if line]
    for line in lines:
        if len(line) != 1 or next(iter(line)) not in KINDS:
            raise Mismatch(f"a line that is none of {', '.join(KINDS)}: {short(line)}")
    return lines


def _check_that_hashes_do_not_matter(arguments: list[str], script: bytes, expected: bytes) -> None:
    """The same input gives the same bytes in a process that puts sets of strings in another order."""
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", "from tidelog.cli import main; main()", *arguments],
            input=script,
            capture_output=True,
            timeout=60,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        if done.stdout != expected:
            raise Mismatch(f"under the hash seed {seed} the output is another one")


def _check_any(checks: Case, printed: Printed) -> None:
    """All checks; where the contract leaves the answer open, with one of the alternatives."""
    common = {key: part for key, part in checks.items() if key != "any_of"}
    alternatives = [an_object(part) for part in a_list(checks.get("any_of", [{}]))]
    faults: list[str] = []
    for alternative in alternatives:
        try:
            _check({**common, **alternative}, printed)
        except Mismatch as mismatch:
            faults.append(str(mismatch))
        else:
            return
    raise Mismatch(" | ".join(faults))


def _check(case: Case, printed: Printed) -> None:
    if printed.exit_code != case.get("exit", 0):
        raise Mismatch(f"exit {printed.exit_code}, wanted {case.get('exit', 0)}: {printed.stderr[-300:]!r}")
    for text in a_list(case.get("stderr_contains", [])):
        if str(text) not in printed.stderr:
            raise Mismatch(f"standard error does not contain {text!r}: {printed.stderr[-300:]!r}")
    expected = [an_object(pattern) for pattern in a_list(case.get("expect", []))]
    for kind in ("transition", "reply"):
        _check_in_order([pattern[kind] for pattern in expected if kind in pattern], printed.of(kind), kind)
    _check_lines(case, printed)
    _check_jobs(case, printed)


def _check_in_order(patterns: list[Value], found: list[dict[str, Value]], kind: str) -> None:
    position = 0
    for number, pattern in enumerate(patterns, 1):
        hit = next((n for n in range(position, len(found)) if fits(pattern, found[n])), None)
        if hit is None:
            raise Mismatch(
                f"no {kind} fits expectation {number} in its place{_nearest(pattern, found[position:])}"
            )
        position = hit + 1


def _nearest(pattern: Value, found: list[dict[str, Value]]) -> str:
    """What is wrong with the first one that tells of the same thing."""
    wanted = an_object(pattern)
    same: Value = {key: wanted[key] for key in wanted if key in ("type", "job_id", "command_id")}
    near = next((each for each in found if fits(same, each)), None)
    return f": {short(pattern)}; nearest: {near and difference(pattern, near)}"


def _check_lines(case: Case, printed: Printed) -> None:
    for pattern in a_list(case.get("contains", [])):
        if not any(fits(pattern, line) for line in printed.lines):
            kind, wanted = next(iter(an_object(pattern).items()))
            raise Mismatch(f"no {kind} fits{_nearest(wanted, printed.of(kind))}")
    for pattern in a_list(case.get("never", [])):
        for line in printed.lines:
            if fits(pattern, line):
                raise Mismatch(f"a line that must not be: {short(line)}")
    for entry in a_list(case.get("count", [])):
        pattern, number = a_list(entry)
        counted = sum(fits(pattern, line) for line in printed.lines)
        if counted != a_number(number):
            raise Mismatch(f"{counted} lines fit {short(pattern)}, wanted {number}")


def _check_jobs(case: Case, printed: Printed) -> None:
    for job_id, rows in an_object(case.get("history", {})).items():
        if printed.history(job_id) != rows:
            raise Mismatch(f"history of {job_id}: wanted {short(rows)}, got {short(printed.history(job_id))}")
    for job_id, pattern in an_object(case.get("state", {})).items():
        fault = difference(pattern, printed.jobs.get(job_id))
        if fault is not None:
            raise Mismatch(f"record of {job_id}: {fault}")
    for absent in a_list(case.get("absent", [])):
        if str(absent) in printed.jobs:
            raise Mismatch(f"{absent} must not be there, but is {short(printed.jobs[str(absent)])}")


@dataclass(slots=True)
class _Life:
    """Where the log has brought a job so far."""

    ordinal: int = -1
    state: JobState | None = None
    attempt: int = 0


def _check_the_house_rules(printed: Printed) -> None:
    """What holds for every log, whatever the case is about (contract sections 3, 4 and 6)."""
    kinds = [next(iter(line)) for line in printed.lines]
    if "job" in kinds and set(kinds[kinds.index("job") :]) != {"job"}:
        raise Mismatch("a job line stands before another kind of line")
    ids = [str(job["job_id"]) for job in printed.of("job")]
    if ids != sorted(set(ids)):
        raise Mismatch("the job lines are not sorted by id, or an id stands twice")
    positions: dict[int, tuple[int, int]] = {}
    lives: dict[str, _Life] = {}
    for event in printed.of("transition"):
        _check_position(event, positions)
        if event["type"] == "purged":
            del lives[str(event["job_id"])]
        elif "ordinal" in event:
            _check_step(event, lives.setdefault(str(event["job_id"]), _Life()))
    states = {job_id: life.state for job_id, life in lives.items()}
    if printed.exit_code == 0 and states != {
        job_id: an_object(job)["state"] for job_id, job in printed.jobs.items()
    }:
        raise Mismatch("the records are not in the states that the log ends in")


def _check_position(event: dict[str, Value], positions: dict[int, tuple[int, int]]) -> None:
    partition, sequence = a_number(event["partition"]), a_number(event["sequence"])
    try:
        at = parse_instant(str(event["at"]))
    except NotAnInstant as error:
        raise Mismatch(f"`at` is no time: {short(event)}") from error
    last_sequence, last_at = positions.get(partition, (-1, at))
    if sequence != last_sequence + 1 or at < last_at or not str(event["at"]).endswith("Z"):
        raise Mismatch(f"not the next position of partition {partition}, or time goes back: {short(event)}")
    positions[partition] = sequence, at


def _check_step(event: dict[str, Value], life: _Life) -> None:
    state = JobState(str(event["state"]))
    attempt = {"leased": life.attempt + 1, "requeued": 0}.get(str(event["type"]), life.attempt)
    if (life.state, state) not in LEGAL_STEPS:
        raise Mismatch(f"{life.state} to {state} is no legal step: {short(event)}")
    if event["ordinal"] != life.ordinal + 1 or event["attempt"] != attempt:
        raise Mismatch(f"wanted ordinal {life.ordinal + 1} and attempt {attempt}: {short(event)}")
    life.ordinal, life.state, life.attempt = life.ordinal + 1, state, attempt
