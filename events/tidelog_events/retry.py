"""When a failed attempt is tried again (contract section 3, Retry)."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog_events.bounds import MAX_ATTEMPTS, MAX_DELAYS
from tidelog_events.instants import MAX_SECONDS, SECOND, Micros

DEFAULT_MAX_ATTEMPTS = 10
DEFAULT_DELAY_CAP = Micros(300 * SECOND)
_CAP_EXPONENT = 9
"""2^9 s is already over the cap; a larger power need not be computed."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a job is tried, and how long after a failure the next try is due.

    Attributes:
        max_attempts: tries in all, 1 to 1,000.
        delays: the wait after the 1st, 2nd … failure; the last one repeats. None: min(2^k, 300) seconds.
    """

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    delays: tuple[Micros, ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= MAX_ATTEMPTS:
            raise ValueError(f"max_attempts is {self.max_attempts}; it must be 1 to {MAX_ATTEMPTS}")
        if self.delays is not None:
            if not 1 <= len(self.delays) <= MAX_DELAYS:
                raise ValueError(f"there are {len(self.delays)} delays; there must be 1 to {MAX_DELAYS}")
            for delay in self.delays:
                if not 0 <= delay <= MAX_SECONDS * SECOND:
                    raise ValueError(f"a delay is {delay / SECOND} s; it must be 0 to {MAX_SECONDS} s")

    def is_exhausted(self, charged: int) -> bool:
        """Whether no try is left after so many charged ones (attempts less returned ones)."""
        return charged >= self.max_attempts

    def delay_after(self, charged: int) -> Micros:
        """The wait after the failure of the `charged`-th try, counted from 1."""
        if self.delays is not None:
            return self.delays[min(charged, len(self.delays)) - 1]
        return Micros(min(2 ** min(charged, _CAP_EXPONENT) * SECOND, DEFAULT_DELAY_CAP))


DEFAULT_RETRY = RetryPolicy()
