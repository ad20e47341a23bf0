"""The faults of a run: a plan that follows from a seed, and its execution by the run's own clock."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Blow(StrEnum):
    """What is done to a target."""

    KILL = "kill -9"
    PAUSE = "SIGSTOP"


class Target(Protocol):
    """Something that can be hit. It comes back by itself from nothing but what is done here."""

    async def kill(self, seconds: float) -> None:
        """End it without a warning; it is back, or on its way, after so many seconds."""

    async def pause(self, seconds: float) -> None:
        """Stop it dead for so long."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One kind of fault, and the bounds of its length in seconds."""

    blow: Blow
    role: str
    shortest: float
    longest: float

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.blow} {self.role}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        at: seconds after the beginning of the faults.
        seconds: how long the target is away.
        victim: which of the targets of its role, as a number to be taken modulo their count.
    """

    at: float
    kind: FaultKind
    seconds: float
    victim: int


def plan(seed: int, kinds: Sequence[FaultKind], seconds: float, gap: tuple[float, float]) -> list[Fault]:
    """The faults of a run; the same for the same arguments. Each kind comes once before any comes again.

    Args:
        seed: of everything that is random here.
        kinds: which there may be.
        seconds: the length of the run; the last fault begins before.
        gap: the shortest and the longest time between the beginnings of two faults.
    """
    rng = random.Random(seed)  # noqa: S311 - faults need no cryptography
    faults: list[Fault] = []
    round_of_kinds: list[FaultKind] = []
    at = rng.uniform(*gap)
    while at < seconds:
        if not round_of_kinds:
            round_of_kinds = rng.sample(kinds, len(kinds))
        kind = round_of_kinds.pop()
        length = rng.uniform(kind.shortest, kind.longest)
        faults.append(Fault(round(at, 3), kind, round(length, 3), rng.randrange(1_000)))
        at += rng.uniform(*gap)
    return faults


async def pass_time(seconds: float) -> None:
    """Let a fault last: it is a length of time, and there is nothing that could be waited for instead."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


async def inflict(faults: Sequence[Fault], targets: Mapping[str, Sequence[Target]]) -> Counter[str]:
    """Carry out a plan, and return how often each kind of fault was; all of them are over then.

    Faults overlap, but no target is hit while it is still away: the blow waits until it is back.

    Raises:
        Whatever a target raises: then it cannot be brought back, and the others are.
    """
    inflicted: Counter[str] = Counter()
    locks = {id(target): asyncio.Lock() for of_role in targets.values() for target in of_role}
    began = time.monotonic()

    async def carry_out(fault: Fault) -> None:
        await pass_time(began + fault.at - time.monotonic())
        of_role = targets[fault.kind.role]
        target = of_role[fault.victim % len(of_role)]
        async with locks[id(target)]:
            if fault.kind.blow is Blow.KILL:
                await target.kill(fault.seconds)
            else:
                await target.pause(fault.seconds)
        inflicted[fault.kind.name] += 1

    async with asyncio.TaskGroup() as group:
        for fault in faults:
            group.create_task(carry_out(fault))
    return inflicted
