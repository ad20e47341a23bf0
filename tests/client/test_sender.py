"""The sender: a slow log holds the callers back, and none is told wrongly that nothing was sent."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.client.core_engine import TOPICS, ProbedLog, until

from tidelog.client.sender import MAX_BATCH_RECORDS, Sender
from tidelog.log.port import LogUnavailable, NewRecord, OutcomeUnknown

RECORD = NewRecord(TOPICS.commands, 0, b"q", b"{}")


async def test_a_slow_log_holds_the_callers_back(log: ProbedLog) -> None:
    sender = Sender(await log.producer(), max_waiting=20)
    log.gate.clear()
    first = asyncio.create_task(sender.send("first", [RECORD], timeout=0.1))
    await until(lambda: log.appends == [1])
    calls = [asyncio.create_task(sender.send(f"call {n}", [RECORD], timeout=0.1)) for n in range(50)]
    results = await asyncio.gather(first, *calls, return_exceptions=True)

    # One was under way; of the others 19 had a place and 31 had not; none of those 50 was sent.
    assert Counter(map(type, results)) == {OutcomeUnknown: 1, LogUnavailable: 50}
    log.gate.set()
    await sender.send("after", [RECORD], timeout=5)
    assert log.appends == [1, 1]
    await sender.close()


async def test_places_are_given_back(log: ProbedLog) -> None:
    sender = Sender(await log.producer(), max_waiting=2)
    await asyncio.gather(*(sender.send(f"call {n}", [RECORD], timeout=5) for n in range(10)))
    assert sum(log.appends) == 10
    assert max(log.appends) <= 2
    await sender.close()


async def test_an_append_is_bounded(log: ProbedLog) -> None:
    sender = Sender(await log.producer())
    half = [RECORD] * (MAX_BATCH_RECORDS // 2)
    await asyncio.gather(*(sender.send(f"call {n}", half, timeout=5) for n in range(5)))
    assert log.appends == [MAX_BATCH_RECORDS, MAX_BATCH_RECORDS, MAX_BATCH_RECORDS // 2]
    await sender.close()
