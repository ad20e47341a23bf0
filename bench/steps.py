"""Where the milliseconds of a pickup go: from the client to the log, to the decision, to the handler.

All times are of the wall clock, which the processes of one machine share.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.errors import MeasureFailed
from bench.watching import Life
from tidelog_events.instants import parse_instant

_NS_PER_MS = 1_000_000
_US_PER_MS = 1_000


@dataclass(frozen=True, slots=True)
class Sent:
    """A job as its sender saw it.

    Attributes:
        began_ns: before it was sent.
        confirmed_ns: when the log had it, or, when it was asked after, when the engine had answered.
        is_asked: whether it was asked after.
    """

    began_ns: int
    confirmed_ns: int
    is_asked: bool


@dataclass(frozen=True, slots=True)
class Steps:
    """Milliseconds since the job was sent."""

    is_asked: bool
    to_confirmation: float
    to_decision: float
    to_handler_from_sent: float


def steps_of(life: Life, sent: Sent) -> Steps:
    """The steps of one job. Raises `MeasureFailed` when its log or its handler does not tell."""
    if life.enqueued_at is None or not isinstance(life.output, int):
        raise MeasureFailed(f"{life.job_id} does not tell when it was enqueued and begun: {life!r}")
    began_ms = sent.began_ns / _NS_PER_MS
    return Steps(
        is_asked=sent.is_asked,
        to_confirmation=sent.confirmed_ns / _NS_PER_MS - began_ms,
        to_decision=parse_instant(life.enqueued_at) / _US_PER_MS - began_ms,
        to_handler_from_sent=life.output / _NS_PER_MS - began_ms,
    )
