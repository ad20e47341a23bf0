"""The Faust app of `tidelog stats`: follows jobs, counts into windowed tables, writes them to Postgres.

Its tables are kept in Kafka by Faust (`<prefix>-stats-*-changelog`), so a restart goes on where it was. It is
approximate by design: Faust commits past messages that are in flight.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

import orjson
from faust.tables.wrappers import WindowWrapper

from tidelog.observer.faust import faust_app, transition_topic
from tidelog.statistics.histogram import percentile
from tidelog.statistics.tally import WINDOW_SECONDS, Followed, Step, Window, count, empty_window, window_start
from tidelog_events.errors import TidelogError
from tidelog_events.identity import QueueName
from tidelog_events.instants import SECOND, Instant
from tidelog_events.transitions import JobTransition, Purged
from tidelog_projections.errors import ProjectionError
from tidelog_projections.statistics import WindowStats, put_windows

if TYPE_CHECKING:
    from faust.types import EventT, StreamT

    from tidelog.settings import Settings
    from tidelog_events.transitions import Transition
    from tidelog_projections.projection import Projection

logger = logging.getLogger(__name__)

_LATE_SECONDS: Final = 6 * 3_600
"""What happened longer ago is not counted any more: its window may be gone."""
_EXPIRES: Final = timedelta(seconds=_LATE_SECONDS + 3_600)
_KEPT_SECONDS: Final = 7 * 86_400
_FLUSH_SECONDS: Final = 2.0
_STOP_SECONDS: Final = 15.0

Key = tuple[QueueName, str, Instant]


class StatisticsEnded(TidelogError):
    """The Faust app has ended by itself."""


class Statistics:
    """The app, and the windows that have changed since they were last written.

    Args:
        settings: of the installation.
        partitions: how many `tidelog.transitions` has; the tables have as many.
        projection: where `queue_stats` is.

    Raises:
        NeedsKafka: the log is not on Kafka.
    """

    def __init__(self, settings: Settings, partitions: int, projection: Projection) -> None:
        self._projection = projection
        self._changed: dict[Key, Window] = {}
        self._app = faust_app(
            settings,
            f"{settings.topics.prefix}-stats",
            topic_partitions=partitions,
            stream_wait_empty=False,
        )
        self._jobs = self._app.Table("jobs", partitions=partitions)
        table = self._app.Table("windows", default=empty_window, partitions=partitions)
        windows = cast(WindowWrapper, table.tumbling(timedelta(seconds=WINDOW_SECONDS), expires=_EXPIRES))
        self._windows = windows.relative_to(_time_of)
        self._app.agent(transition_topic(self._app, settings), name="statistics")(self._follow)
        self._app.timer(interval=_FLUSH_SECONDS)(self._flush)

    async def run(self, stop: asyncio.Event) -> None:
        """Count until `stop` is set. What was counted and not written yet is written at the end.

        Raises:
            StatisticsEnded: Faust gave up.
        """
        await self._app.start()
        ended = asyncio.ensure_future(self._app.wait_until_stopped())
        asked = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([ended, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            asked.cancel()
            await self._stop()
            await self._flush()
        if not stop.is_set():
            reason = self._app.crash_reason
            raise StatisticsEnded(f"the statistics have ended by themselves: {reason}. Start them again")

    async def _stop(self) -> None:
        """Let Faust leave its group and commit, within a bound: without a broker it would go on trying."""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._app.stop()
        except TimeoutError:
            logger.warning("Faust did not end within %g s and is left behind", _STOP_SECONDS)

    async def _follow(self, stream: StreamT[Transition | None]) -> None:
        async for event in stream:
            if isinstance(event, JobTransition):
                self._count(event)
            elif isinstance(event, Purged):
                self._jobs.pop(event.job_id, None)

    def _count(self, event: JobTransition) -> None:
        followed: Followed | None = self._jobs.get(event.job_id)
        step = Step.over(followed, event)
        if step.followed is not None:
            self._jobs[event.job_id] = step.followed
        elif followed is not None:
            del self._jobs[event.job_id]
        if event.at < (time.time() - _LATE_SECONDS) * SECOND:
            return
        name = orjson.dumps([event.queue, event.wire_name]).decode()
        window: Window = self._windows[name].current()
        if count(window, event, step):
            self._windows[name] = window
            self._changed[event.queue, event.wire_name, window_start(event.at)] = window

    async def _flush(self) -> None:
        changed, self._changed = self._changed, {}
        if not changed:
            return
        rows = [_row(key, window) for key, window in changed.items()]
        keep_from = Instant(round((time.time() - _KEPT_SECONDS) * SECOND))
        try:
            await self._projection.postgres.run(
                lambda connection: put_windows(connection, rows, keep_from=keep_from)
            )
        except ProjectionError as error:
            self._changed = changed | self._changed
            logger.warning("statistics wait for Postgres: %s", error)


def _time_of(event: EventT[Transition | None] | None) -> float:
    """When it happened by the log, in seconds since 1970: windows do not depend on when it is read."""
    transition = None if event is None else event.value
    if not isinstance(transition, JobTransition):
        raise TypeError(f"there is no window for {transition!r}")
    return transition.at / SECOND


def _row(key: Key, window: Window) -> WindowStats:
    queue, wire_name, start = key
    return WindowStats(
        queue=queue,
        wire_name=wire_name,
        window_start=start,
        window_seconds=WINDOW_SECONDS,
        enqueued=window["enqueued"],
        started=window["started"],
        succeeded=window["succeeded"],
        failed=window["failed"],
        dead_lettered=window["dead_lettered"],
        quarantined=window["quarantined"],
        cancelled=window["cancelled"],
        wait_p50=percentile(window["wait"], 0.5),
        wait_p95=percentile(window["wait"], 0.95),
        run_p50=percentile(window["run"], 0.5),
        run_p95=percentile(window["run"], 0.95),
    )
