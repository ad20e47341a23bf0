"""A role on a loop of its own."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tidelog.cli.threads import Role, on_own_loop


@asynccontextmanager
async def failing() -> AsyncIterator[Role]:
    async def fail(_stop: asyncio.Event) -> None:
        raise RuntimeError("by design")

    yield fail


async def test_what_a_role_ended_with_is_raised_once_and_reported_nowhere_else() -> None:
    unasked: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unasked.append(context))
    with pytest.raises(RuntimeError, match="by design"):
        async with on_own_loop("role", failing) as role:
            await role(asyncio.Event())
    gc.collect()
    assert not unasked
