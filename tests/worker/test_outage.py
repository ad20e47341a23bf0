"""A worker while its log refuses commands, or takes them without saying so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest
from tests.worker.house import House

from tidelog.log.port import Log, LogUnavailable, NewRecord, OutcomeUnknown, Producer
from tidelog.worker.pump import LogFactory


class Troubled(Producer):
    """Fails as its plan says, one entry for each append; then it is well."""

    def __init__(self, inner: Producer, plan: list[str]) -> None:
        self._inner = inner
        self._plan = plan

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> list[int]:
        trouble = self._plan.pop(0) if self._plan else "none"
        if trouble == "away":
            raise LogUnavailable("nobody there")
        offsets = await self._inner.append(records, timeout=timeout)
        if trouble == "unknown":
            raise OutcomeUnknown("no answer")
        return offsets

    async def close(self) -> None:
        await self._inner.close()


def troubled(open_log: LogFactory, plan: list[str]) -> LogFactory:
    """The same log, whose producer fails by the plan."""

    async def opened() -> Log:
        log = await open_log()
        whole = log.producer

        async def producer() -> Producer:
            return Troubled(await whole(), plan)

        log.producer = producer  # type: ignore[method-assign]
        return log

    return opened


@pytest.mark.parametrize(
    "plan",
    [
        ["away", "away"],
        ["unknown"] * 4,
        ["none", "away", "unknown", "none", "away", "away", "unknown"],
    ],
)
async def test_trouble_with_the_log_costs_time_and_nothing_else(
    house: House, plan: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []

    async def note(number: int) -> int:
        ran.append(number)
        await asyncio.sleep(0)  # lets others begin, so that outcomes come in several batches
        return number

    house.job(note)
    house.open_log = troubled(house.open_log, plan)
    with caplog.at_level(logging.INFO, "tidelog.worker"):
        ids = [await house.enqueue("note", str(n), payload={"number": n}) for n in range(8)]
        # A takeover after an unknown outcome has the claim repeated, which may be granted twice.
        await house.until_type(ids[0], "enqueued")
        async with house.worker(concurrency=3):
            assert set(await house.until_ends(*ids)) == {"succeeded"}
    assert sorted(ran) == list(range(8))
    assert not plan
    for job_id in ids:
        assert house.history.types(job_id) == ["enqueued", "leased", "succeeded"]
    assert "cannot be sent and are tried again" in caplog.text
    assert "takes commands again" in caplog.text
