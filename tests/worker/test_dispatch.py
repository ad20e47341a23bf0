"""Dispatch policies: which queue gets a free slot."""

from __future__ import annotations

from collections import Counter

import pytest

from tidelog.worker.dispatch import BadDispatch, Strict, Weighted
from tidelog.worker.settings import WorkerSettings
from tidelog_events.identity import QueueName

A, B, C = QueueName("a"), QueueName("b"), QueueName("c")


def test_strict_gives_all_to_the_first_that_asks() -> None:
    policy = Strict(["a", "b", "c"])
    assert policy.share(5, [C, B]) == {B: 5}
    assert policy.share(5, [C, A]) == {A: 5}
    assert policy.share(5, []) == {}


def test_weighted_interleaves_evenly() -> None:
    policy = Weighted({"a": 6, "b": 3})
    picks = [next(iter(policy.share(1, [A, B]))) for _ in range(9)]
    assert "".join(picks) == "abaabaaba"


def test_weighted_keeps_the_proportion_over_any_sizes() -> None:
    policy = Weighted({"a": 5, "b": 3, "c": 1})
    total: Counter[QueueName] = Counter()
    for slots in (1, 2, 7, 3, 5) * 10:
        total.update(policy.share(slots, [A, B, C]))
    assert total == {A: 100, B: 60, C: 20}


def test_weighted_gives_everything_to_those_that_ask() -> None:
    policy = Weighted({"a": 6, "b": 3})
    assert policy.share(4, [B]) == {B: 4}
    assert policy.share(4, []) == {}


def test_a_queue_that_was_idle_cannot_catch_up() -> None:
    policy = Weighted({"a": 1, "b": 1})
    policy.share(100, [A])
    assert policy.share(10, [A, B]) == {A: 5, B: 5}


@pytest.mark.parametrize("weights", [{}, {"a": 0}, {"a": -1}, {"a b": 1}, {"a": 1_000_001}])
def test_bad_weights_are_refused(weights: dict[str, int]) -> None:
    with pytest.raises(BadDispatch):
        Weighted(weights)


def test_an_application_without_jobs_is_told_what_is_missing() -> None:
    with pytest.raises(BadDispatch, match=r"declares no job.* Import the modules that declare its jobs"):
        WorkerSettings().policy(())
    assert WorkerSettings(queues=("a",)).policy(()).queues == (A,)


@pytest.mark.parametrize("queues", [[], ["a", "a"], ["a/b"]])
def test_bad_queues_are_refused(queues: list[str]) -> None:
    with pytest.raises(BadDispatch):
        Strict(queues)
