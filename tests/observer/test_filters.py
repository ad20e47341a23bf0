"""Which transitions reach an observer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.house import eventually
from tests.observer.stage import Seen, Stage


async def told(stage: Stage, **options: Any) -> list[str]:
    """The types of the transitions that an observer with these options is told of, in one partition."""
    events = stage.partitions[0]
    await events.enqueued(1, queue="billing", wire_name="invoice")
    billed = events.birth(0, "billing", "invoice")
    await events.put(billed)
    await events.put(events.lease(billed))
    await events.put(events.death(billed))
    await events.put(events.pause("billing"))
    await events.enqueued(1, queue="images", wire_name="resize")
    await events.put(events.pause("images"))
    seen = Seen()
    async with stage.observing(seen.handler(), **options) as observer:
        await eventually(lambda: observer.counters.passed + len(seen) == len(events.written))
    return [f"{event.TYPE} {getattr(event, 'queue', '')}" for event in seen.events]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            [
                "enqueued billing",
                "enqueued billing",
                "leased billing",
                "dead_lettered billing",
                "enqueued images",
            ],
        ),
        ({"states": ["DeadLettered"]}, ["dead_lettered billing"]),
        ({"states": ["Leased", "DeadLettered"]}, ["leased billing", "dead_lettered billing"]),
        ({"wire_names": ["resize"]}, ["enqueued images"]),
        ({"queue": "images"}, ["enqueued images"]),
        (
            {"queues": ["images", "billing"], "states": ["Scheduled"]},
            [*2 * ["enqueued billing"], "enqueued images"],
        ),
        ({"types": ["queue_paused"]}, ["queue_paused billing", "queue_paused images"]),
        (
            {"types": ["queue_paused", "leased"], "queue": "billing"},
            ["leased billing", "queue_paused billing"],
        ),
        ({"types": ["queue_paused"], "states": ["Leased"]}, []),
    ],
    ids=str,
)
async def test_what_is_said_must_hold(stage: Stage, options: dict[str, Any], expected: list[str]) -> None:
    assert await told(stage, **options) == expected
