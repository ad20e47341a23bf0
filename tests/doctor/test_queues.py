"""Due jobs that nobody asks for are found, by what workers have sent; and what has ended badly is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.doctor.patient import QUEUES, Patient, ailments, of
from tests.engine.house import eventually

from tidelog.clock import wall_clock
from tidelog.doctor.findings import Health
from tidelog.doctor.queues import judge_queues
from tidelog.inspection.presence import Presence
from tidelog_events.identity import Partition, QueueName, WorkerId
from tidelog_events.instants import SECOND, Instant
from tidelog_projections.queue_loads import QueueLoad

NOW = Instant(1_800_000_000 * SECOND)
BILLING = QueueName("billing")
PARTITION = Partition(4)
LATE = QueueLoad(
    queue=BILLING,
    partition=PARTITION,
    paused=False,
    due=1_200,
    oldest_due=Instant(NOW - 90 * SECOND),
    dead_lettered=0,
    quarantined=0,
)
ANN = frozenset({WorkerId("ann")})


async def test_a_queue_that_nobody_serves_is_found_once_its_jobs_are_late(patient: Patient) -> None:
    await patient.initialise()
    async with patient.engine(), patient.projector() as projector:
        await patient.enqueue()
        await eventually(lambda: projector.counters.records >= len(QUEUES))
        assert ailments(of(await patient.examine("queues"), "queues")) == []
        later = replace(patient, clock=lambda: Instant(wall_clock() + 70 * SECOND))
        findings = of(await later.examine("queues"), "queues")
    assert [finding.health for finding in findings] == [Health.ERROR] * len(QUEUES)
    assert [finding.message.partition(";")[0] for finding in findings] == [
        f"queue {queue}: 1 due job and no worker serves it" for queue in sorted(QUEUES)
    ]


@pytest.mark.parametrize(
    "presence",
    [
        Presence({BILLING: ANN}, {}, is_whole=True),
        Presence({}, {BILLING: ANN}, is_whole=True),
        Presence({}, {}, is_whole=False),
    ],
    ids=["asked for", "worked on", "too much to tell"],
)
def test_a_queue_that_may_be_served_is_no_finding(presence: Presence) -> None:
    [finding] = judge_queues([LATE], {PARTITION: presence}, NOW)
    assert finding.health is Health.OK


def test_only_late_jobs_of_queues_that_run_are_held_against_anybody() -> None:
    nobody = {PARTITION: Presence({QueueName("others"): ANN}, {}, is_whole=True)}
    [finding] = judge_queues([LATE], nobody, NOW)
    assert finding.health is Health.ERROR
    assert "1,200 due jobs and no worker serves it; the oldest has been due for 1 min 30 s" in finding.message
    fresh = replace(LATE, oldest_due=Instant(NOW - 30 * SECOND))
    assert judge_queues([fresh], nobody, NOW)[0].health is Health.OK
    [paused] = judge_queues([replace(LATE, paused=True)], nobody, NOW)
    assert (paused.health, paused.message) == (
        Health.WARNING,
        "due jobs wait in paused queues: billing (1,200)",
    )


def test_what_ended_badly_is_counted() -> None:
    bad = replace(LATE, due=0, oldest_due=None, dead_lettered=12, quarantined=1)
    [finding] = judge_queues([bad], {}, NOW)
    assert finding.message == "ended badly and kept: billing (12 dead-lettered, 1 quarantined)"
