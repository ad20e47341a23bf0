"""Rows of one log are never mixed with those of another: what was read last is looked for before going on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import orjson
import pytest
from tests.projection.log import BOUND, TOPICS, ForgetfulStore, append, new_log, until
from tests.projection.story import PARTITION, Story, records_of
from tests.projection.tables import Tables
from tests.roles import at_work

from tidelog.log.memory import MemoryLog, MemoryStore
from tidelog.log.port import Cleanup, Log, NewRecord, TopicPartition
from tidelog.projector import AnotherLog, PositionNotInLog, Projector, rebuild
from tidelog_events.codec import UnknownVersion
from tidelog_events.errors import TidelogError
from tidelog_events.identity import Partition
from tidelog_events.wire import to_wire
from tidelog_projections.batch import Batch, Happened, Mark
from tidelog_projections.projection import Projection


def story_of(jobs: int, name: str, partition: Partition = PARTITION) -> Story:
    """Every job is an event, so that two stories of one length have the same offsets and sequences."""
    story = Story(partition)
    for number in range(jobs):
        story.enqueue(f"default/{name}-{number}")
    return story


async def log_of(*stories: Story) -> Log:
    log = await new_log(partitions=len(stories))
    for story in stories:
        await append(log, records_of(story.events, TOPICS))
    return log


async def project(log: Log, projection: Projection, story: Story) -> None:
    """Let a projector come to the end of the story, and stop it."""
    async with at_work(Projector(log, TOPICS, projection)):
        assert await projection.wait_for(PARTITION, story.events[-1].sequence, timeout=BOUND)


async def refused(log: Log, projection: Projection, error: type[TidelogError] = AnotherLog) -> str:
    """What a projector that has nothing to go on with says."""
    with pytest.raises(error) as raised:
        async with asyncio.timeout(BOUND):
            await Projector(log, TOPICS, projection).run(asyncio.Event())
    return str(raised.value)


def names_both_ways_out(message: str) -> bool:
    wrong_place = message.find("TIDELOG_LOG, TIDELOG_PREFIX and TIDELOG_POSTGRES")
    return 0 < wrong_place < message.find("`tidelog rebuild`")


@pytest.mark.parametrize("grown_to", [4, 9])
async def test_a_log_that_has_grown_past_the_position_is_found_out(
    projection: Projection, tables: Tables, grown_to: int
) -> None:
    await project(await log_of(old := story_of(4, "old")), projection, old)
    before = await tables.everything()
    message = await refused(await log_of(story_of(grown_to, "new")), projection)
    assert "at offset 3, test.transitions[0] holds another record than the one that was read there" in message
    assert names_both_ways_out(message)
    assert await tables.everything() == before


async def test_a_log_that_is_shorter_than_the_position_names_both_ways_out(projection: Projection) -> None:
    await project(await log_of(old := story_of(4, "old")), projection, old)
    message = await refused(await log_of(story_of(2, "new")), projection, PositionNotInLog)
    assert "at offset 4 of test.transitions[0], and the log holds 0 to 2" in message
    assert names_both_ways_out(message)


@pytest.mark.parametrize(("grown_to", "error"), [(2, PositionNotInLog), (9, AnotherLog)])
async def test_partitions_that_were_never_read_are_not_begun_with_from_another_log(
    projection: Projection, tables: Tables, grown_to: int, error: type[TidelogError]
) -> None:
    unseen = [story_of(1, "unseen", Partition(0)), story_of(1, "unseen", Partition(2))]
    old, new = story_of(4, "old", Partition(1)), story_of(grown_to, "new", Partition(1))
    log = await log_of(Story(Partition(0)), old, Story(Partition(2)))
    async with at_work(Projector(log, TOPICS, projection)):
        assert await projection.wait_for(Partition(1), old.events[-1].sequence, timeout=BOUND)
    before = await tables.everything()
    projector = Projector(await log_of(unseen[0], new, unseen[1]), TOPICS, projection)
    # What ends it is the partition that shows it, whatever its number.
    with pytest.raises(error, match=r"test.transitions\[1\]"):
        async with asyncio.timeout(BOUND):
            await projector.run(asyncio.Event())
    message = str(projector.stopped[Partition(0)])
    assert message.startswith("partitions 0, 2 of test.transitions: ")
    assert names_both_ways_out(message)
    assert await tables.everything() == before


async def test_only_the_partition_that_is_foreign_stops_and_a_rebuild_sets_it_going(
    projection: Projection, tables: Tables
) -> None:
    other = story_of(1, "other", Partition(1))
    await project(await log_of(old := story_of(4, "old"), other), projection, old)
    # As long as the old one: the position after a rebuild has the same numbers as the one before.
    new = story_of(4, "new")
    log = await log_of(new, other)
    projector = Projector(log, TOPICS, projection)
    async with at_work(projector):
        await until(lambda: bool(projector.stopped))
        assert projector.stopped.keys() == {PARTITION}
        other.enqueue("other/more")
        await append(log, records_of(other.events[-1:], TOPICS))
        assert await projection.wait_for(Partition(1), other.events[-1].sequence, timeout=BOUND)
        await rebuild(log, TOPICS, projection)
        new.enqueue("default/after")
        await append(log, records_of(new.events[-1:], TOPICS))
        assert await projection.wait_for(PARTITION, new.events[-1].sequence, timeout=BOUND)
    jobs = {row["job_id"] for row in await tables.rows("SELECT job_id FROM jobs WHERE partition = 0")}
    assert jobs == {"default/after", *(f"default/new-{number}" for number in range(4))}


async def test_what_a_rebuild_has_read_is_known_again(projection: Projection) -> None:
    log = await log_of(story := story_of(4, "job"))
    await rebuild(log, TOPICS, projection)
    await refused(await log_of(story_of(9, "new")), projection)
    story.enqueue("default/after")
    await append(log, records_of(story.events[-1:], TOPICS))
    await project(log, projection, story)


async def test_the_same_log_is_known_again_whatever_was_read_last(projection: Projection) -> None:
    story = story_of(5, "job")
    records = records_of(story.events, TOPICS)
    log = await new_log()

    def changed(number: int, **fields: object) -> NewRecord:
        value = orjson.dumps({**to_wire(story.events[number]), **fields})
        return NewRecord(TOPICS.transitions, PARTITION, b"key", value)

    for record in (
        records[0],
        changed(1, attempt=2**40),  # fits no column
        changed(2, type="of_a_later_release"),
        NewRecord(TOPICS.transitions, PARTITION, b"key", b"no JSON"),
        NewRecord(TOPICS.transitions, PARTITION, b"key", None),
    ):
        await append(log, [record])
        end = await log.end_offset(TopicPartition(TOPICS.transitions, PARTITION))
        projector = Projector(log, TOPICS, projection)
        async with at_work(projector):
            await until(lambda projector=projector: projector.counters.records == 1)  # type: ignore[misc]
        last = (await projection.positions())[PARTITION].last
        assert last is not None
        assert last.offset == end - 1
    # At the last record that could be read: the one after it stops the partition.
    await append(log, [records[3], changed(4, version=2)])
    await refused(log, projection, UnknownVersion)
    last = (await projection.positions())[PARTITION].last
    assert last is not None
    assert last.offset == 5
    await refused(log, projection, UnknownVersion)


async def test_a_record_that_the_log_has_forgotten_is_not_asked_for(projection: Projection) -> None:
    store = ForgetfulStore()
    log = await new_log(store=store)
    story = story_of(3, "job")
    await append(log, records_of(story.events, TOPICS))
    await project(log, projection, story)
    store.forget()
    story.enqueue("default/after")
    await append(log, records_of(story.events[-1:], TOPICS))
    await project(log, projection, story)


async def test_a_log_with_nothing_where_the_record_stood_is_another_one(projection: Projection) -> None:
    """As with Kafka, where another log may have a transaction's marker there."""
    await project(await log_of(old := story_of(2, "old")), projection, old)
    store = MemoryStore()
    log = MemoryLog(store)
    specs = [replace(spec, cleanup=Cleanup.COMPACT, retention_seconds=None) for spec in TOPICS.specs(1)]
    await log.create_topics(specs)
    records = [
        record._replace(key=b"%d" % (number % 2))
        for number, record in enumerate(records_of(story_of(4, "new").events, TOPICS))
    ]
    await append(log, records)
    store.clean()  # of the four, the two newest are left
    assert "at offset 1, test.transitions[0] holds no record" in await refused(log, projection)


async def test_a_position_of_an_earlier_release_is_taken_as_it_is(
    projection: Projection, tables: Tables
) -> None:
    story = story_of(3, "job")
    log = await log_of(story)
    await project(log, projection, story)
    await tables.rows("UPDATE projection_position SET last_offset = NULL, last_digest = NULL")
    story.enqueue("default/after")
    await append(log, records_of(story.events[-1:], TOPICS))
    await project(log, projection, story)
    await refused(await log_of(story_of(9, "new")), projection)


async def test_what_comes_twice_or_holds_no_record_leaves_what_was_read_last(projection: Projection) -> None:
    story = story_of(3, "job")
    entries = [Happened(event.sequence, event) for event in story.events]
    newest, older = Mark(2, b"newest"), Mark(1, b"older")
    await projection.apply(Batch(PARTITION, entries, 3, newest))
    assert (await projection.apply(Batch(PARTITION, entries[:2], 2, older))).last == newest
    after = await projection.apply(Batch(PARTITION, [], 7))
    assert (after.next_offset, after.last) == (7, newest)
    assert (await projection.positions())[PARTITION] == after
