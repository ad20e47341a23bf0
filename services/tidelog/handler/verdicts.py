"""What a handler may say of its job's further tries, by the exception that it raises (contract section 8)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, Literal, TypeAlias

from tidelog_events.instants import MAX_SECONDS, Instant, NotAnInstant, from_datetime, from_seconds, later


class _ByPolicy(Enum):
    BY_POLICY = "the job's own policy decides"


BY_POLICY: Final = _ByPolicy.BY_POLICY

NextDue: TypeAlias = Instant | Literal[_ByPolicy.BY_POLICY] | None
"""When a failed job is due again; None for never; or what its policy says."""


class GiveUp(Exception):
    """Another try is of no use: the job is dead-lettered at once, whatever its policy leaves.

        raise GiveUp("the card was stolen") from error

    Subclasses count as well. The exception is told as the job's error, as any other one.
    """

    __module__ = "tidelog"  # in errors it is called what handlers import it as


class TryAgain(Exception):
    """Try again at a time that the handler knows better than the job's policy.

        raise TryAgain("the limit of the API is used up", delay=60)

    The try is counted, and the policy's ceiling is not asked: who raises it for ever is tried for ever.
    `ctx.attempt` tells how often it was.

    Args:
        message: told as the job's error.
        delay: seconds from now, or a timedelta; not beside `at`.
        at: the time, with its zone; one that is over means at once.

    Raises:
        ValueError: neither or both of them, a negative delay, one over 1,000,000,000 s, or a time without
            a zone.
    """

    __module__ = "tidelog"

    def __init__(
        self, message: str = "", *, delay: float | timedelta | None = None, at: datetime | None = None
    ) -> None:
        super().__init__(message)
        if (delay is None) is (at is None):
            raise ValueError("say either delay or at: when is the job to be tried again?")
        if at is not None:
            try:
                self._at: Instant | None = from_datetime(at)
            except NotAnInstant as error:
                raise ValueError(f"at={at!r} is no time: {error}") from None
            return
        self._at = None
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else float(delay or 0)
        if not (math.isfinite(seconds) and 0 <= seconds <= MAX_SECONDS):
            raise ValueError(f"delay={delay!r} must be 0 to {MAX_SECONDS:,} seconds")
        self._delay = from_seconds(seconds)

    def due(self, now: Instant) -> Instant:
        """When the next try is due."""
        return later(now, self._delay) if self._at is None else self._at


def next_due(error: BaseException, now: Instant) -> NextDue:
    """What the exception says of further tries. Never raises what a subclass could bring about."""
    if issubclass(type(error), GiveUp):
        return None
    if not issubclass(type(error), TryAgain):
        return BY_POLICY
    try:
        return TryAgain.due(error, now)  # type: ignore[arg-type]  # it is one, whatever it says of itself
    except BaseException:  # noqa: BLE001  every attribute may be the handler's code
        return BY_POLICY
