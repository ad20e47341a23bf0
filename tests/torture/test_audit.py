"""The audit is green on an honest log, and red on each that was tampered with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import orjson
from tests.core.playing import Script, claim, dead, enqueue, failure, heartbeat, lease, report, success
from tests.torture.audit import audit
from tests.torture.evidence import Evidence
from tests.torture.fold import expected_row, expected_steps
from tests.torture.jobs import Kind, key_of
from tests.torture.journal import Ending, Run

from tidelog_events.codec import decode_transition
from tidelog_events.identity import JobId, Partition
from tidelog_events.identity import Sequence as Number
from tidelog_events.transitions import JobFact, Transition
from tidelog_events.wire import WireObject

ONLY = Partition(0)
STEADY, FLAKY, LOST, DOOMED, HEIR, BEREFT = (
    JobId(f"q/{key_of(kind, number)}")
    for kind, number in (
        (Kind.STEADY, "1"),
        (Kind.FLAKY, "1"),
        (Kind.STEADY, "2"),
        (Kind.DOOMED, "1"),
        (Kind.AFTER_DOOM, "1"),
        (Kind.BEREFT, "1"),
    )
)
WORKER = "host-7-abc"
RUNS = [
    Run(STEADY, 1, 7, Ending.RETURNED),
    Run(FLAKY, 1, 7, Ending.RAISED),
    Run(LOST, 1, 7, None),
    Run(DOOMED, 1, 7, Ending.RAISED),
    Run(FLAKY, 2, 7, Ending.RETURNED),
    Run(LOST, 2, 7, Ending.RETURNED),
    Run(HEIR, 1, 7, Ending.RETURNED),
]


def honest() -> Evidence:
    """A small run: successes, a failure, a renewed lease, one that ran out, a dead letter, dependents."""
    script = Script()
    retry: WireObject = {"max_attempts": 10, "delays": [1]}
    born = [enqueue(job_id, retry=retry) for job_id in (STEADY, FLAKY, LOST, DOOMED)]
    born += [enqueue(HEIR, parents=[DOOMED], mode="OnAnyTerminal"), enqueue(BEREFT, parents=[DOOMED])]
    printed = [
        script.do_all(0, born),
        script.do(1, claim("q", WORKER, max_jobs=4, lease_seconds=5)),
        script.do(2, heartbeat(WORKER, lease(STEADY), lease_seconds=9)),
        script.do(3, report(WORKER, success(STEADY, output=1), failure(FLAKY), dead(DOOMED))),
        script.do(10, claim("q", WORKER, max_jobs=4)),
        script.do(11, report(WORKER, success(FLAKY, 2, output=2), success(LOST, 2, output=2))),
        script.do(12, report(WORKER, success(HEIR, output=1))),
    ]
    events = [_event(written) for line in printed for written in line.transitions]
    return evidence_of(events)


def _event(written: WireObject) -> Transition:
    event = decode_transition(orjson.dumps(written))
    assert event is not None
    return event


def evidence_of(events: Sequence[Transition]) -> Evidence:
    """All that an honest projection and honest clients would say of these events."""
    facts: dict[JobId, list[JobFact]] = {}
    for event in events:
        if isinstance(event, JobFact):
            facts.setdefault(event.job_id, []).append(event)
    depths = Counter((str(of_job[-1].queue), of_job[-1].state.value) for of_job in facts.values())
    return Evidence(
        events={ONLY: events},
        sent=frozenset(facts),
        acknowledged=frozenset(facts),
        runs=RUNS,
        rows={job_id: expected_row(of_job) for job_id, of_job in facts.items()},
        steps={job_id: expected_steps(of_job) for job_id, of_job in facts.items()},
        depths=depths,
        counted=depths,
        partitions=1,
    )


def numbered(events: Sequence[Transition]) -> list[Transition]:
    """The same events with positions that hide what was done to them."""
    return [replace(event, sequence=Number(number)) for number, event in enumerate(events)]


def test_an_honest_log_passes() -> None:
    found = audit(honest())
    assert found.problems == []
    assert found.counts["jobs acknowledged"] == found.counts["jobs ended"] == 6
    assert found.counts["leases"] == found.counts["runs of handlers"] == 7
    assert found.counts["outcomes: lease_expired"] == 1
    assert found.counts["runs killed"] == 1


def index_of(events: Sequence[Transition], kind: type[Transition], job_id: JobId) -> int:
    """Where the last event of that type of a job stands."""
    found = [i for i, event in enumerate(events) if isinstance(event, kind) and event.job_id == job_id]  # type: ignore[attr-defined]
    return found[-1]
