"""The audit of the observer: it is told of every transition that it asked for, and in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.torture.jobs import OBSERVED
from tests.torture.journal import Delivery
from tests.torture.lives import Problem

from tidelog_events.identity import Partition
from tidelog_events.transitions import JobTransition, Transition


def to_be_delivered(events: Sequence[Transition]) -> list[Delivery]:
    """The places of what the observer is to be told of one partition, in order."""
    return [
        (event.partition, event.sequence)
        for event in events
        if isinstance(event, JobTransition) and event.state in OBSERVED
    ]


def problems_of_deliveries(
    events: Mapping[Partition, Sequence[Transition]], deliveries: Sequence[Delivery]
) -> Iterator[Problem]:
    """What was not delivered, was delivered for nothing, or for the first time after what came later."""
    first = list(dict.fromkeys(deliveries))
    for partition, of_partition in events.items():
        wanted = to_be_delivered(of_partition)
        told = [place for place in first if place[0] == partition]
        for place in sorted(set(wanted).difference(told)):
            yield f"the observer was never told of {place[0]}:{place[1]}"
        for place in sorted(set(told).difference(wanted)):
            yield f"the observer was told of {place[0]}:{place[1]}, which it did not ask for"
        if told != sorted(told):
            yield f"the observer was told of partition {partition} in another order than the log's"
