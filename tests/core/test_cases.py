"""The conformance cases: what anybody may expect of the decisions, whatever the code behind them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.case_patterns import fits
from tests.core.case_runner import Case, Mismatch, load, run
from tests.core.case_script import Value

CASES = load(Path(__file__).parents[1] / "cases")


@pytest.mark.parametrize("case", CASES, ids=[f"{case['id']}: {case['title']}" for case in CASES])
def test_case(case: Case) -> None:
    run(case)


ENQUEUE: Value = {"at": 0, "command": {"type": "enqueue", "wire_name": "w", "job_id": "default/a"}}


@pytest.mark.parametrize(
    "check",
    [
        {"exit": 2},
        {"stderr_contains": ["line 7"]},
        {"expect": [{"transition": {"type": "leased"}}]},
        {"expect": [{"reply": {"result": "Ok"}}, {"reply": {"result": "Ok"}}]},
        {"contains": [{"reply": {"result": "Duplicate"}}]},
        {"never": [{"transition": {}}]},
        {"count": [[{"transition": {}}, 2]]},
        {"history": {"default/a": [["enqueued", "Leased", 0]]}},
        {"state": {"default/a": {"state": "Leased"}}},
        {"state": {"default/none": {}}},
        {"absent": ["default/a"]},
        {"any_of": [{"exit": 2}, {"absent": ["default/a"]}]},
    ],
    ids=lambda check: next(iter(check)),
)
def test_the_runner_sees_what_does_not_hold(check: Case) -> None:
    with pytest.raises(Mismatch):
        run({"id": "x", "title": "x", "script": [ENQUEUE], **check})


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": None}, {"a": 0}),
        ([1, 2], [1]),
        ({"$t": 1}, "2026-01-01T00:00:01.000001Z"),
        ({"$any": True}, None),
        ({"$len": 2}, [1]),
        ({"$re": "^b"}, "ab"),
        ({"$set": [1, 1]}, [1, 2]),
        ({"$mentions": "queue"}, {"type": "queue"}),
    ],
)
def test_a_pattern_that_does_not_fit(pattern: Value, value: Value) -> None:
    assert not fits(pattern, value)


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ({"a": None}, {"b": 1}),
        ({"a": 1}, {"a": 1.0, "b": 2}),
        ("2026-01-01T00:00:01Z", "2026-01-01T00:00:01.000000Z"),
        ({"$t": 1.5}, "2026-01-01T00:00:01.500000Z"),
        ({"$set": [{"a": 1}, 2]}, [2, {"a": 1, "b": 3}]),
        ({"$mentions": ["zone", "queue"]}, {"message": "the queue is wrong"}),
    ],
)
def test_a_pattern_that_fits(pattern: Value, value: Value) -> None:
    assert fits(pattern, value)
