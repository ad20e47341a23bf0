"""Which queue gets a free slot when several have work.

Both policies are work-conserving: the driver offers only queues that may have work, and a policy gives away
every slot that it is offered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

from tidelog_events.errors import TidelogError
from tidelog_events.identity import QueueName, queue_name

MAX_WEIGHT = 1_000_000


class BadDispatch(TidelogError):
    """Queues or weights that no policy can serve."""


class DispatchPolicy(ABC):
    """Shares free slots over queues."""

    @property
    @abstractmethod
    def queues(self) -> tuple[QueueName, ...]:
        """The queues that are served, the most urgent first."""

    @abstractmethod
    def share(self, slots: int, asking: Collection[QueueName]) -> dict[QueueName, int]:
        """Give all `slots` to the queues that ask, when there is one that does."""


class Strict(DispatchPolicy):
    """Queues in order: one gets a slot only when those before it have no work.

    Raises:
        BadDispatch: no queue, the same one twice, or a name outside the grammar.
    """

    def __init__(self, queues: Sequence[str]) -> None:
        self._queues = tuple(_checked(queue) for queue in queues)
        if not self._queues or len(set(self._queues)) < len(self._queues):
            raise BadDispatch(f"A worker serves one queue or more, each named once, not {list(queues)}.")

    @property
    def queues(self) -> tuple[QueueName, ...]:
        return self._queues

    def share(self, slots: int, asking: Collection[QueueName]) -> dict[QueueName, int]:
        first = next((queue for queue in self._queues if queue in asking), None)
        return {} if first is None or slots <= 0 else {first: slots}


class Weighted(DispatchPolicy):
    """Smooth weighted round robin: while all have work, slots go to the queues in proportion to their
    weights, evenly interleaved (6 and 3 give a b a a b a, not six in a row).

    Raises:
        BadDispatch: no queue, a name outside the grammar, or a weight that is no number from 1 to 1,000,000.
    """

    def __init__(self, weights: Mapping[str, int]) -> None:
        if not weights:
            raise BadDispatch("A worker serves one queue or more; there is no weight at all.")
        for queue, weight in weights.items():
            if not 1 <= weight <= MAX_WEIGHT:
                raise BadDispatch(f"The weight of {queue!r} is {weight}; it must be 1 to {MAX_WEIGHT}.")
        self._weights = {_checked(queue): weight for queue, weight in weights.items()}
        self._credit = dict.fromkeys(self._weights, 0)
        self._by_weight = tuple(sorted(self._weights, key=lambda queue: -self._weights[queue]))

    @property
    def queues(self) -> tuple[QueueName, ...]:
        return self._by_weight

    def share(self, slots: int, asking: Collection[QueueName]) -> dict[QueueName, int]:
        shares: dict[QueueName, int] = {}
        eligible = [queue for queue in self._by_weight if queue in asking]
        if not eligible:
            return shares
        total = sum(self._weights[queue] for queue in eligible)
        for _ in range(slots):
            for queue in eligible:
                self._credit[queue] += self._weights[queue]
            chosen = max(eligible, key=self._credit.__getitem__)
            self._credit[chosen] -= total
            shares[chosen] = shares.get(chosen, 0) + 1
        return shares


def _checked(queue: str) -> QueueName:
    try:
        return queue_name(queue)
    except ValueError as error:
        raise BadDispatch(f"A queue to serve: {error}.") from None
