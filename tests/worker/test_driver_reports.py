"""The driver's reports: batched, resent under the same id, and never about a lease that is lost."""

from __future__ import annotations

import logging
from itertools import count

import pytest
from tests.worker.grants import granted
from tests.worker.stage import PARTITIONS, WORKER, Stage, command_id, key_of, rows

from tidelog.worker.dispatch import Strict
from tidelog.worker.messages import Answered, Ended, NotSent
from tidelog.worker.outcomes import succeeded
from tidelog.worker.reports import Reports
from tidelog_events.bounds import MAX_OUTPUT_BYTES
from tidelog_events.commands import Report
from tidelog_events.identity import ClientId, CommandId, JobId, Partition, partition_of
from tidelog_events.identity import Sequence as EventSequence
from tidelog_events.replies import InvalidReply, Result, RowResult


def _invalid(report: Report) -> Answered:
    return Answered(
        InvalidReply(
            command_id=report.command_id,
            type="report",
            result=Result.INVALID,
            partition=Partition(0),
            sequence=EventSequence(1),
            field="outcomes[0].output",
            message="outcomes[0].output is wrong",
        )
    )


def test_outcomes_that_come_together_are_reported_together() -> None:
    stage = Stage()
    a, b = stage.running("a", "b")
    stage.tell(Ended(key_of(a), succeeded(a, b"1")), Ended(key_of(b), succeeded(b, b"2")))
    (report,) = stage.reports
    assert rows([report]) == [("q/a", "Success"), ("q/b", "Success")]
    assert [row.lease for row in report.outcomes] == [a.lease, b.lease]


def test_rows_of_a_report_live_on_one_partition() -> None:
    queues = ["q1", "q2", "q3", "q4", "q5"]
    stage = Stage(policy=Strict(queues), concurrency=20)
    grants = []
    for claim in stage.claims:
        grants.append(stage.grant("a", claim.queue))
        stage.granted(claim, grants[-1])
    stage.tell(*[Ended(key_of(grant), succeeded(grant, b"1")) for grant in grants])
    for report in stage.reports:
        assert len({partition_of(row.job_id.split("/")[0], PARTITIONS) for row in report.outcomes}) == 1
    assert len(rows(stage.reports)) == 5


def test_a_partition_that_always_has_outcomes_does_not_hold_up_those_of_another_one() -> None:
    ids = (CommandId(f"c-{number}") for number in count())
    reports = Reports(WORKER, ClientId("client"), PARTITIONS, lambda: next(ids))

    def end(queue: str, *keys: str) -> None:
        for key in keys:
            row = succeeded(granted(JobId(f"{queue}/{key}"), 1), b"1")
            reports.add(row, give_up_at=100.0)

    def taken() -> list[tuple[str, str]]:
        return rows([sent.command for sent in reports.take(0.0, 2) if isinstance(sent.command, Report)])

    end("q1", "a", "b", "c")
    end("q2", "z")
    assert taken() == [("q1/a", "Success"), ("q1/b", "Success")]
    end("q1", "d", "e")
    assert ("q2/z", "Success") in taken()


def test_large_outcomes_are_spread_over_several_reports() -> None:
    stage = Stage(concurrency=20)
    grants = stage.running(*map(str, range(20)))
    output = b'"' + b"x" * 60_000 + b'"'
    stage.tell(*[Ended(key_of(grant), succeeded(grant, output)) for grant in grants])
    assert len(stage.reports) > 2
    assert len(rows(stage.reports)) == 20


def test_a_report_without_an_answer_is_sent_again_as_it_was() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.ended(grant)
    (first,) = stage.reports
    stage.later(2.1)
    (second,) = stage.reports
    assert second is first
    stage.reported(first)
    stage.later(30.0)
    assert not stage.reports


def test_a_stale_lease_after_a_resend_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.ended(grant)
    stage.later(2.1)
    with caplog.at_level(logging.INFO, "tidelog.worker"):
        stage.reported(stage.reports[0], RowResult.STALE_LEASE)
    assert [record.levelno for record in caplog.records] == [logging.INFO]
    assert "or it was applied before" in caplog.text


def test_a_stale_lease_at_once_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.ended(grant)
    with caplog.at_level(logging.INFO, "tidelog.worker"):
        stage.reported(stage.reports[0], RowResult.STALE_LEASE)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_report_that_was_not_sent_is_sent_soon_and_its_refusal_is_not_ambiguous(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.ended(grant)
    stage.tell(NotSent((command_id(stage.reports[0]),)))
    stage.later(0.6)
    with caplog.at_level(logging.INFO, "tidelog.worker"):
        stage.reported(stage.reports[0], RowResult.STALE_LEASE)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_the_lease_is_renewed_until_the_outcome_is_acknowledged() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.ended(grant)
    report = stage.reports[0]
    stage.later(21.0)
    assert [row.job_id for row in stage.beats[0].leases] == ["q/a"]
    stage.renewed(stage.beats[0], lost=["q/a"])  # the report was applied, and its answer is late
    stage.reported(report)
    stage.later(60.0)
    assert not stage.beats
    assert not stage.reports


def test_an_outcome_is_given_up_when_nothing_can_come_of_it(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.ended(grant)
    with caplog.at_level(logging.ERROR, "tidelog.worker"):
        stage.later(121.0)
    assert "unknown" in caplog.text
    stage.later(60.0)
    assert not stage.reports
    assert not stage.beats


def test_an_output_over_the_bound_is_a_failure_before_it_is_sent() -> None:
    stage = Stage()
    a, b = stage.running("a", "b")
    stage.ended(a, output=b'"' + b"x" * (MAX_OUTPUT_BYTES - 2) + b'"')
    assert rows(stage.reports) == [("q/a", "Success")]
    stage.ended(b, output=b'"' + b"x" * (MAX_OUTPUT_BYTES - 1) + b'"')
    assert rows(stage.reports) == [("q/b", "Failure")]
    assert "65537 bytes" in str(stage.reports[0].outcomes[0])


def test_an_output_that_the_engine_finds_too_large_becomes_a_failure() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.ended(grant)
    stage.reported(stage.reports[0], RowResult.OUTPUT_TOO_LARGE)
    assert rows(stage.reports) == [("q/a", "Failure")]
    assert "OutputTooLarge" in str(stage.reports[0].outcomes[0])


def test_an_invalid_report_is_split_so_that_one_row_cannot_spoil_the_others() -> None:
    stage = Stage()
    a, b = stage.running("a", "b")
    stage.tell(Ended(key_of(a), succeeded(a, b"1")), Ended(key_of(b), succeeded(b, b"2")))
    stage.tell(_invalid(stage.reports[0]))
    good, bad = stage.reports
    stage.reported(good)
    stage.tell(_invalid(bad))
    (last,) = stage.reports
    assert rows([last]) == [("q/b", "Failure")]
    stage.tell(_invalid(last))
    stage.later(300.0)
    assert not stage.reports
    assert not stage.beats


def test_an_answer_that_comes_twice_changes_nothing() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.ended(grant)
    report = stage.reports[0]
    stage.reported(report)
    stage.reported(report, RowResult.OUTPUT_TOO_LARGE)
    assert not stage.reports
