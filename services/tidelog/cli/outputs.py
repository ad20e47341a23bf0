"""Outputs of ended jobs for the handlers of a worker (`JobContext.dependency_output`), read from Postgres."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Self

from tidelog.cli.session import open_projection
from tidelog.handler.context import NoOutput

if TYPE_CHECKING:
    from tidelog.settings import Settings
    from tidelog_events.identity import JobId
    from tidelog_events.jsontext import JsonBytes
    from tidelog_projections.projection import Projection

_PATIENCE_SECONDS: Final = 30.0
"""For how long a read waits until Postgres has the end of a parent, which the engine knew of earlier."""


class Outputs:
    """Reads outputs over a connection that the first read opens: most workers need no Postgres."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._projection: Projection | None = None

    async def read(self, job_id: JobId) -> JsonBytes:
        """The output of a job that has ended; JSON's null of one that ended without success.

        Raises:
            NoOutput: the job has not ended, or there is none, as far as Postgres knows after a while.
            ProjectionUnavailable: Postgres cannot be reached.
        """
        projection = await self._connected()
        record = await projection.wait_terminal(job_id, timeout=_PATIENCE_SECONDS)
        if record is None:
            raise NoOutput(
                f"Postgres does not show the end of {job_id} within {_PATIENCE_SECONDS:g} s: it has not "
                "ended, there is no such job, or `tidelog projector` does not run."
            )
        return record.output

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def _connected(self) -> Projection:
        async with self._opening:  # two first reads at once must not open two
            if self._projection is None:
                self._projection = await self._opened.enter_async_context(open_projection(self._settings))
            return self._projection
