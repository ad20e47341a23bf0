"""The plan of faults follows from its seed, and being carried out it hits every target within the bounds."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.torture.faults import Blow, Fault, FaultKind, inflict, pass_time, plan

KINDS = [FaultKind(blow, role, 1.0, 2.0) for blow in Blow for role in ("engine", "worker")]


class Dummy:
    """A target that notes when it is away."""

    def __init__(self) -> None:
        self.blows: list[Blow] = []
        self.away = 0
        self.most_away = 0

    async def kill(self, seconds: float) -> None:
        await self._suffer(Blow.KILL, seconds)

    async def pause(self, seconds: float) -> None:
        await self._suffer(Blow.PAUSE, seconds)

    async def _suffer(self, blow: Blow, seconds: float) -> None:
        self.blows.append(blow)
        self.away += 1
        self.most_away = max(self.most_away, self.away)
        await pass_time(seconds)
        self.away -= 1


class Broken(Dummy):
    """A target that does not come back."""

    async def kill(self, seconds: float) -> None:  # noqa: ARG002 - it is away for good
        raise ConnectionError("it does not start")


def test_a_seed_is_a_plan() -> None:
    first, again, other = (plan(seed, KINDS, 60.0, (1.0, 3.0)) for seed in (1, 1, 2))
    assert first == again != other


def test_every_kind_comes_before_any_comes_again() -> None:
    faults = plan(3, KINDS, 60.0, (1.0, 3.0))
    assert {fault.kind for fault in faults[:4]} == {fault.kind for fault in faults[4:8]} == set(KINDS)
    assert all(0 < fault.at < 60 and 1 <= fault.seconds <= 2 for fault in faults)


async def test_faults_overlap_but_not_on_one_target() -> None:
    one, two = Dummy(), Dummy()
    kill, pause = FaultKind(Blow.KILL, "engine", 0, 0), FaultKind(Blow.PAUSE, "engine", 0, 0)
    faults = [Fault(0.0, kill, 0.01, 0), Fault(0.0, pause, 0.01, 2), Fault(0.0, pause, 0.01, 1)]
    assert await inflict(faults, {"engine": [one, two]}) == Counter({kill.name: 1, pause.name: 2})
    assert one.blows == [Blow.KILL, Blow.PAUSE]
    assert two.blows == [Blow.PAUSE]
    assert one.most_away == 1


async def test_a_target_that_does_not_come_back_ends_the_faults() -> None:
    kind = FaultKind(Blow.KILL, "broker", 0, 0)
    faults = [Fault(0.0, kind, 0.0, 0), Fault(3_600.0, kind, 0.0, 0)]
    with pytest.raises(ExceptionGroup) as caught:
        await inflict(faults, {"broker": [Broken()]})
    assert caught.group_contains(ConnectionError, match="does not start")
