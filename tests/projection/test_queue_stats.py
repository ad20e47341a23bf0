"""The table of statistics: windows are written whole, kept for a while, and left alone by a rebuild."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.projection.log import TOPICS, append, new_log
from tests.projection.story import START, Story, batch_of, records_of
from tests.projection.tables import Tables

from tidelog.projector import rebuild
from tidelog_events.identity import QueueName
from tidelog_events.instants import SECOND, Instant
from tidelog_projections.projection import Projection
from tidelog_projections.statistics import WindowStats, put_windows

WINDOW = WindowStats(
    queue=QueueName("billing"),
    wire_name="nul\0name",
    window_start=START,
    window_seconds=60,
    enqueued=3,
    started=2,
    succeeded=1,
    failed=1,
    dead_lettered=0,
    quarantined=0,
    cancelled=0,
    wait_p50=0.25,
    wait_p95=2.0,
    run_p50=None,
    run_p95=None,
)
ROWS = "SELECT queue, wire_name, enqueued, wait_p95, run_p50 FROM queue_stats ORDER BY window_start"


async def put(projection: Projection, *windows: WindowStats, keep_from: Instant = START) -> None:
    await projection.postgres.run(lambda connection: put_windows(connection, windows, keep_from=keep_from))


async def test_a_window_is_written_over_the_one_that_was_there(
    projection: Projection, tables: Tables
) -> None:
    await put(projection, WINDOW)
    await put(projection, replace(WINDOW, enqueued=5, run_p50=1.5))
    (row,) = await tables.rows(ROWS)
    assert row == {
        "queue": "billing",
        "wire_name": "nul\u2400name",
        "enqueued": 5,
        "wait_p95": pytest.approx(2.0),
        "run_p50": pytest.approx(1.5),
    }


async def test_old_windows_are_dropped(projection: Projection, tables: Tables) -> None:
    later = Instant(START + 60 * SECOND)
    await put(projection, WINDOW, replace(WINDOW, window_start=later, enqueued=1))
    await put(projection, replace(WINDOW, window_start=later, enqueued=2), keep_from=later)
    assert [row["enqueued"] for row in await tables.rows(ROWS)] == [2]


async def test_a_rebuild_leaves_them_as_they_are(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue()
    log = await new_log()
    await append(log, records_of(story.events, TOPICS))
    await projection.apply(batch_of(story.events))
    await put(projection, WINDOW)
    before = await tables.rows(ROWS)
    await rebuild(log, TOPICS, projection)
    assert await tables.rows(ROWS) == before
    await put(projection, replace(WINDOW, enqueued=9))
    assert [row["enqueued"] for row in await tables.rows(ROWS)] == [9]
