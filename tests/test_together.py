"""Several things at once."""

from __future__ import annotations

import asyncio

import pytest

from tidelog.together import together


class Work:
    """Works until it is ended, and notes that it was."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.is_over = False

    async def work(self) -> str:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.is_over = True
        return "never"


async def test_what_is_returned_comes_in_order() -> None:
    first = asyncio.Event()

    async def slow() -> str:
        await first.wait()
        return "slow"

    async def quick() -> str:
        first.set()
        return "quick"

    assert await together([slow(), quick()]) == ["slow", "quick"]
    assert await together([]) == []


async def test_when_one_fails_nothing_of_the_others_goes_on() -> None:
    other = Work()

    async def fails() -> str:
        await other.began.wait()
        raise LookupError("by design")

    with pytest.raises(LookupError, match="by design"):
        await together([other.work(), fails()])
    assert other.is_over


async def test_a_cancellation_ends_them_all() -> None:
    works = [Work(), Work()]
    call = asyncio.create_task(together([work.work() for work in works]))
    for work in works:
        await work.began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert all(work.is_over for work in works)
