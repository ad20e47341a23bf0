"""The audit is green on an honest log, and red on each that was tampered with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson
import pytest
from tests.core.playing import (
    Script,
    claim,
    dead,
    enqueue,
    failure,
    heartbeat,
    lease,
    report,
    success,
    time_of,
)
from tests.torture.audit import audit
from tests.torture.deliveries import to_be_delivered
from tests.torture.evidence import Evidence
from tests.torture.fold import expected_parents, expected_row, expected_steps, expected_tags
from tests.torture.jobs import Kind, key_of
from tests.torture.journal import Delivery, Ending, Run
from tests.torture.ticks import minted_by, problems_of_ticks

from tidelog_events.codec import decode_transition
from tidelog_events.identity import JobId, Partition, WorkerId
from tidelog_events.identity import Sequence as Number
from tidelog_events.transitions import (
    DeadLettered,
    JobFact,
    Leased,
    LeaseExpired,
    ScheduleFact,
    ScheduleTicked,
    Succeeded,
    Transition,
)
from tidelog_events.wire import WireObject, to_wire

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
    outcomes = [success(STEADY, output=1, add_tags=["one"]), failure(FLAKY), dead(DOOMED)]
    printed = [
        script.do_all(0, born),
        script.do(1, claim("q", WORKER, max_jobs=4, lease_seconds=5)),
        script.do(2, heartbeat(WORKER, lease(STEADY), lease_seconds=9)),
        script.do(3, report(WORKER, *outcomes)),
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
        deliveries=to_be_delivered(events),
        rows={job_id: expected_row(of_job) for job_id, of_job in facts.items()},
        steps={job_id: expected_steps(of_job) for job_id, of_job in facts.items()},
        tags={job_id: expected_tags(of_job) for job_id, of_job in facts.items()},
        parents={job_id: expected_parents(of_job) for job_id, of_job in facts.items()},
        depths=depths,
        counted=depths,
        partitions=1,
    )


def test_an_honest_log_passes() -> None:
    found = audit(honest())
    assert found.problems == []
    assert found.counts["jobs acknowledged"] == found.counts["jobs ended"] == 6
    assert found.counts["leases"] == found.counts["runs of handlers"] == 7
    assert found.counts["outcomes: lease_expired"] == 1
    assert found.counts["runs killed"] == 1


def test_a_log_that_lost_an_event_has_a_gap() -> None:
    evidence = honest()
    events = list(evidence.events[ONLY])
    del events[4]
    assert "the event at position 4 says that it is 0:5" in problems(replace(evidence, events={ONLY: events}))


def test_a_job_that_vanished_is_missed() -> None:
    events = [e for e in honest().events[ONLY] if not isinstance(e, JobFact) or e.job_id != STEADY]
    evidence = replace(evidence_of(numbered(events)), acknowledged=frozenset([STEADY]), sent=honest().sent)
    assert f"{STEADY} was acknowledged and is not in the log" in problems(evidence)


def test_a_job_that_nobody_sent_is_found() -> None:
    evidence = honest()
    assert f"{HEIR} is in the log and nobody has sent it" in problems(
        replace(evidence, sent=evidence.sent - {HEIR})
    )


def test_a_job_that_has_not_ended_is_found() -> None:
    events = honest().events[ONLY]
    assert f"{HEIR} ended as Leased, not as Succeeded" in problems(evidence_of(events[:-1]))


def test_a_doubled_outcome_is_found() -> None:
    def double(events: list[Transition]) -> None:
        index = index_of(events, Succeeded, STEADY)
        outcome = events[index]
        assert isinstance(outcome, Succeeded)
        events.insert(index + 1, replace(outcome, ordinal=outcome.ordinal + 1))

    found = problems(tampered(double))
    assert f"{STEADY}: lease 6 has 2 applied outcomes" in found
    assert "an illegal step from Succeeded to Succeeded" in found


def test_an_outcome_that_was_written_twice_has_one_ordinal_twice() -> None:
    def repeat(events: list[Transition]) -> None:
        index = index_of(events, Succeeded, STEADY)
        events.insert(index, events[index])

    assert "ordinal 2 where 3 was due" in problems(tampered(repeat))


def test_two_live_leases_are_found() -> None:
    def lease_again(events: list[Transition]) -> None:
        index = index_of(events, Leased, STEADY)
        granted = events[index]
        assert isinstance(granted, Leased)
        events.insert(index + 1, replace(granted, ordinal=2, attempt=2))

    assert "a lease was granted while another one was live" in problems(tampered(lease_again))


def test_an_attempt_that_was_passed_over_is_found() -> None:
    assert "attempt 3 where 2 was due" in problems(changed(Leased, LOST, attempt=3))


def test_an_outcome_after_the_end_of_its_lease_is_found() -> None:
    late = time_of(3_600)
    found = problems(changed(Succeeded, HEIR, at=late))
    assert "an outcome or a heartbeat counted after the lease had run out" in found


def test_an_outcome_of_somebody_else_is_found() -> None:
    found = problems(changed(Succeeded, HEIR, worker_id=WorkerId("host-8-abc")))
    assert f"host-8-abc acted on a lease of {WORKER}" in found


def test_a_lease_that_expired_early_is_found() -> None:
    assert "a lease expired before its time" in problems(changed(LeaseExpired, LOST, at=time_of(5)))


def test_time_that_goes_back_is_found() -> None:
    assert "time goes back at event" in problems(changed(Succeeded, HEIR, at=time_of(0)))


def test_a_child_that_did_not_wait_is_found() -> None:
    def end_last(events: list[Transition]) -> None:
        events.append(events.pop(index_of(events, DeadLettered, DOOMED)))

    assert f"{HEIR} was leased before its parent {DOOMED} had ended" in problems(tampered(end_last))


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        (
            [*RUNS, Run(STEADY, 2, 7, None)],
            "a handler ran attempt 2, of which the log has no lease",
        ),
        ([*RUNS, RUNS[0]], f"{STEADY}: 2 handlers ran attempt 1"),
        ([replace(RUNS[0], pid=8), *RUNS[1:]], f"{STEADY}: process 8 ran a lease of {WORKER}"),
        (RUNS[1:], f"{STEADY}: attempt 1 is succeeded, and no handler has returned"),
        (
            [replace(RUNS[0], ending=Ending.RAISED), *RUNS[1:]],
            f"{STEADY}: attempt 1 is succeeded, and no handler has returned",
        ),
    ],
)
def test_handlers_and_leases_must_match(runs: list[Run], problem: str) -> None:
    assert problem in problems(replace(honest(), runs=runs))


def test_a_row_that_is_not_the_fold_of_the_log_is_found() -> None:
    evidence = honest()
    rows = {**evidence.rows, STEADY: {**evidence.rows[STEADY], "attempt": 2}}
    assert f"{STEADY} in Postgres: attempt is 2, and by the log 1" in problems(replace(evidence, rows=rows))


def test_rows_too_few_and_too_many_are_found() -> None:
    evidence = honest()
    rows = {JobId("q/other") if job_id == STEADY else job_id: row for job_id, row in evidence.rows.items()}
    found = problems(replace(evidence, rows=rows))
    assert f"{STEADY} is not in Postgres" in found
    assert "q/other is in Postgres and not in the log" in found


def test_what_postgres_lacks_beside_a_job_is_found() -> None:
    found = problems(replace(honest(), steps={}, tags={}, parents={}))
    assert f"{FLAKY} in Postgres: the steps are not those of the log" in found
    assert f"{STEADY} in Postgres: the tags are not those of the log" in found
    assert f"{HEIR} in Postgres: the parents are not those of the log" in found


def test_depths_that_are_not_the_count_are_found() -> None:
    evidence = honest()
    found = problems(replace(evidence, depths={**evidence.depths, ("q", "Succeeded"): 3}))
    assert found.count("queue_depths says") == 2


def problems(evidence: Evidence) -> str:
    """What the audit finds broken, as one text."""
    return "\n".join(audit(evidence).problems)


def tampered(tamper: Callable[[list[Transition]], None]) -> Evidence:
    """The honest run with another log, that the projection followed as if nothing were wrong."""
    events = list(honest().events[ONLY])
    tamper(events)
    return evidence_of(numbered(events))


def changed(kind: type[JobFact], job_id: JobId, **fields: object) -> Evidence:
    """The honest run with other fields, as JSON, in the last event of that type of a job."""

    def change(events: list[Transition]) -> None:
        index = index_of(events, kind, job_id)
        events[index] = _event({**to_wire(events[index]), **fields})

    return tampered(change)


def index_of(events: Sequence[Transition], kind: type[JobFact], job_id: JobId, which: int = -1) -> int:
    """Where an event of that type of a job stands, the last one unless said otherwise."""
    return [
        index for index, event in enumerate(events) if isinstance(event, kind) and event.job_id == job_id
    ][which]


def numbered(events: Sequence[Transition]) -> list[Transition]:
    """The same events with positions that hide what was done to them."""
    return [replace(event, sequence=Number(number)) for number, event in enumerate(events)]


def ticks() -> list[ScheduleFact]:
    """A schedule that ticks every second: at its time, after an outage, and with an overlap."""
    script = Script()
    fields = {
        "schedule_id": "q/steady.tick",
        "cron": "* * * * * *",
        "wire_name": "steady",
        "no_overlap": True,
    }
    printed = [
        script.do(0.5, {"type": "put_schedule", **fields}),
        script.wait(3),
        script.do(3, claim("q", WORKER)),
        script.do(3, report(WORKER, success("q/steady.tick@20260101T000001Z"))),
        script.away(5, 200),
        script.do(200, {"type": "remove_schedule", "schedule_id": "q/steady.tick"}),
    ]
    events = [_event(written) for line in printed for written in line.transitions]
    return [event for event in events if isinstance(event, ScheduleFact)]


def test_ticks_that_are_minted_or_skipped_once_pass() -> None:
    assert list(problems_of_ticks(ticks())) == []
    assert len(minted_by(ticks())) == 2
    assert sum(event.skipped_count for event in ticks() if isinstance(event, ScheduleTicked)) == 198


@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        (lambda tick: replace(tick, minted=()), "1 ticks were due, 0 were minted and 0 skipped"),
        (lambda tick: replace(tick, minted=tick.minted * 2), "a tick was settled twice"),
        (lambda tick: replace(tick, skipped_count=1), "1 ticks were due, 1 were minted and 1 skipped"),
        (
            lambda tick: replace(tick, minted=(JobId("q/steady.tick@20260101T000009Z"),)),
            "a tick was settled that was not due",
        ),
    ],
)
def test_a_tick_that_is_lost_doubled_or_made_up_is_found(
    tamper: Callable[[ScheduleTicked], ScheduleTicked], problem: str
) -> None:
    events = ticks()
    first = next(index for index, event in enumerate(events) if isinstance(event, ScheduleTicked))
    tick = events[first]
    assert isinstance(tick, ScheduleTicked)
    events[first] = tamper(tick)
    assert problem in "\n".join(problems_of_ticks(events))


def test_a_minted_job_that_is_not_there_is_missed() -> None:
    assert "q/steady.tick@20260101T000001Z was minted and is not in the log" in problems(
        evidence_of(numbered(ticks()))
    )


@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        (lambda told: told[1:], "the observer was never told of 0:"),
        (lambda told: [*told, (ONLY, Number(0))], "the observer was told of 0:0, which it did not ask for"),
        (lambda told: [told[1], told[0], *told[2:]], "in another order than the log's"),
    ],
)
def test_what_the_observer_was_told_must_match_the_log(
    tamper: Callable[[list[Delivery]], list[Delivery]], problem: str
) -> None:
    evidence = honest()
    assert problem in problems(replace(evidence, deliveries=tamper(list(evidence.deliveries))))


def test_a_delivery_may_come_again() -> None:
    evidence = honest()
    again = [*evidence.deliveries, *evidence.deliveries[:2]]
    assert audit(replace(evidence, deliveries=again)).problems == []
