"""The declared schedules of an application, put there when a worker starts.

To put what is there already changes nothing (contract section 3), so any number of workers may do so at once,
and a worker that starts after an outage does not keep missed ticks from being made up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Final

from tidelog.client.client import Client
from tidelog.client.errors import DEFAULT_TIMEOUT, CommandRefused, ScheduleNotFound
from tidelog.client.schedule import Schedule
from tidelog.pausing import Backoff
from tidelog_events.errors import TidelogError

_logger: Final = logging.getLogger(__name__)

_LAST_DELAY: Final = 60.0

ClientOpener = Callable[[], AbstractAsyncContextManager[Client]]
"""Opens a client of the engines, one that can read when schedules are to be pruned."""


def actor_of(name: str | None) -> str:
    """In whose name an application's schedules are put, for the audit; those of one name belong together."""
    return "app" if name is None else f"app {name}"


class ScheduleSync:
    """Puts schedules, and removes those that were put in the same name and are declared no more.

    Args:
        schedules: the declared ones.
        open_client: is called for each try.
        name: of the application; needed to prune.
        prune: whether to remove.
        timeout: seconds to wait for each answer.
        first_delay: seconds before the second try; the delays double, up to a minute.
    """

    def __init__(
        self,
        schedules: Iterable[Schedule],
        open_client: ClientOpener,
        *,
        name: str | None = None,
        prune: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        first_delay: float = 1.0,
    ) -> None:
        self._declared = {schedule.schedule_id: schedule for schedule in schedules}
        self._missing = dict(self._declared)
        self._open_client = open_client
        self._actor = actor_of(name)
        self._prunes = prune and name is not None
        self._timeout = timeout
        self._backoff = Backoff(first_delay, _LAST_DELAY)

    async def run(self, stop: asyncio.Event) -> None:
        """Try until it is done, or `stop` is set; while there is no engine or no log it waits, and says so.

        What an engine refuses is an error in the program's log, and the others are put. A try that was broken
        off by `stop` may have put some of them.
        """
        work = asyncio.ensure_future(self._keep_trying(stop))
        asked = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([work, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            work.cancel()
            await asyncio.wait([work])
        if not work.cancelled():
            work.result()

    async def _keep_trying(self, stop: asyncio.Event) -> None:
        while True:
            try:
                async with self._open_client() as client:
                    await self._put(client)
                    if self._prunes:
                        await self._prune(client)
            except TidelogError as error:
                _logger.warning(
                    "The declared schedules are not all in place; the next try is in %g s: %s",
                    self._backoff.seconds,
                    error,
                )
            else:
                return
            await self._backoff.pause(stop)

    async def _put(self, client: Client) -> None:
        """Put what is missing. Raises what one of them met; the others are put all the same."""
        results = await asyncio.gather(
            *(self._put_one(client, schedule) for schedule in self._missing.values()), return_exceptions=True
        )
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            raise failures[0]
        _logger.info("%d declared schedules are in place.", len(self._declared))

    async def _put_one(self, client: Client, schedule: Schedule) -> None:
        try:
            await client.put_schedule(schedule, actor=self._actor, timeout=self._timeout)
        except CommandRefused as error:
            # The same code has accepted it here: the engine is of another release, or knows other zones.
            _logger.error("An engine refuses the schedule %s: %s", schedule.schedule_id, error)  # noqa: TRY400  no fault
        self._missing.pop(schedule.schedule_id, None)

    async def _prune(self, client: Client) -> None:
        for found in await client.schedules(timeout=self._timeout):
            if found.put_by != self._actor or found.schedule_id in self._declared:
                continue
            try:
                await client.remove_schedule(found.schedule_id, actor=self._actor, timeout=self._timeout)
            except ScheduleNotFound:
                continue  # another worker was faster
            _logger.info("The schedule %s is declared no more; it was removed.", found.schedule_id)
