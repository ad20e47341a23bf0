"""A batch that comes twice changes nothing, and a crash between batches leaves no trace."""

from __future__ import annotations

import random

import pytest
from tests.fold import Folded, folded
from tests.projection.story import PARTITION, Story, batch_of, random_story
from tests.projection.tables import Tables
from tests.providers.postgres import create_database, drop_database

from tidelog_events.identity import Sequence
from tidelog_events.record import RECORD_FIELDS, JobRecord
from tidelog_events.transitions import Transition
from tidelog_projections.batch import Batch, Happened, LogEntry, Position, Unread
from tidelog_projections.errors import SequenceGap
from tidelog_projections.projection import Projection


async def test_a_batch_again_changes_nothing(projection: Projection, tables: Tables) -> None:
    story = random_story(seed=1, steps=200)
    batch = batch_of(story.events)
    position = await projection.apply(batch)
    before = await tables.everything()
    assert await projection.apply(batch) == position
    assert await projection.apply(batch_of(story.events[5:20])) == position
    assert await tables.everything() == before


async def test_an_event_that_stands_in_the_log_twice_changes_nothing(
    projection: Projection, tables: Tables
) -> None:
    story = random_story(seed=1, steps=100)
    await projection.apply(batch_of(story.events))
    before = await tables.everything()
    again = [Happened(1_000 + event.sequence, event) for event in story.events]
    position = await projection.apply(Batch(PARTITION, again, 2_000))
    assert position == Position(PARTITION, story.events[-1].sequence, 2_000)
    after = await tables.everything()
    assert {**after, "projection_position": []} == {**before, "projection_position": []}


@pytest.mark.parametrize("seed", range(6))
async def test_wherever_the_log_is_cut_and_read_again_the_rows_are_the_same(
    projection: Projection, tables: Tables, postgres_server: str, seed: int
) -> None:
    story = random_story(seed, steps=300)
    events = story.events
    choose = random.Random(seed)  # noqa: S311  a test that can be repeated
    done = 0
    while done < len(events):
        # After a crash the reader may start again before what was taken in already.
        start = max(0, done - choose.choice([0, 0, 1, 10]))
        end = min(len(events), done + choose.choice([1, 2, 7, 40]))
        await projection.apply(batch_of(events[start:end]))
        done = end
        assert await tables.depths() == await tables.counted_depths()
    by_pieces = await tables.everything()

    other_dsn = await create_database(postgres_server)
    async with await Projection.connect(other_dsn) as other:
        await other.apply(batch_of(events))
        async with Tables.of(other_dsn) as other_tables:
            at_once = await other_tables.everything()
    await drop_database(postgres_server, other_dsn)
    assert by_pieces == at_once


@pytest.mark.parametrize("seed", range(4))
async def test_the_rows_are_the_fold_of_the_log(projection: Projection, seed: int) -> None:
    story = random_story(seed + 100, steps=300)
    for first in range(0, len(story.events), 16):
        await projection.apply(batch_of(story.events[first : first + 16]))
    page = await projection.jobs(limit=500)
    assert {record.job_id: record for record in page.jobs} == {
        job_id: _as_shown(record) for job_id, record in folded(story.events).items()
    }


def _as_shown(folded: Folded) -> JobRecord:
    """The record with its texts as Postgres shows them."""

    def shown(text: str) -> str:
        return text.replace("\0", "\u2400")

    record = JobRecord(**{name: getattr(folded, name) for name in RECORD_FIELDS})
    record.wire_name = shown(record.wire_name)
    record.terminal_cause = None if record.terminal_cause is None else shown(record.terminal_cause)
    tags = (shown(tag) if isinstance(tag, str) else (shown(tag[0]), shown(tag[1])) for tag in record.tags)
    record.tags = tuple(dict.fromkeys(tags))  # two that are shown alike are one
    return record


async def test_a_missing_event_is_an_alarm_and_nothing_is_taken_in(
    projection: Projection, tables: Tables
) -> None:
    story = random_story(seed=2, steps=60)
    await projection.apply(batch_of(story.events[:10]))
    before = await tables.everything()
    with pytest.raises(SequenceGap, match=r"partition 0 .* after sequence 9 comes 11 .*tidelog rebuild"):
        await projection.apply(batch_of(story.events[11:]))
    with pytest.raises(SequenceGap, match="after sequence 11 comes 13"):
        await projection.apply(
            Batch(PARTITION, [Happened(e.sequence, e) for e in story.events[10:20] if e.sequence != 12], 20)
        )
    assert await tables.everything() == before


async def test_the_first_event_of_a_partition_must_be_its_first(projection: Projection) -> None:
    story = random_story(seed=2, steps=60)
    with pytest.raises(SequenceGap, match="after sequence -1 comes 1"):
        await projection.apply(batch_of(story.events[1:]))


async def test_a_record_that_cannot_be_read_may_have_been_an_event(
    projection: Projection, tables: Tables
) -> None:
    first, second, third, fourth = _four_events()
    await projection.apply(Batch(PARTITION, [Happened(0, first), Unread(1, None, "no JSON", b"\xff\0")], 2))
    assert (await projection.positions())[PARTITION] == Position(PARTITION, first.sequence, 2, 1)
    # The unread record was the second event, and nothing else is missing.
    position = await projection.apply(Batch(PARTITION, [Happened(2, third)], 3))
    assert position == Position(PARTITION, third.sequence, 3)
    assert await tables.rows("SELECT log_offset, reason, value FROM projection_rejects") == [
        {"log_offset": 1, "reason": "no JSON", "value": b"\xff\0"}
    ]
    # A stranger's record that was no event leaves no hole either.
    await projection.apply(Batch(PARTITION, [Unread(3, None, "no JSON", b""), Happened(4, fourth)], 5))
    assert await projection.position(PARTITION) == fourth.sequence
    assert second.sequence == 1


async def test_an_unread_record_with_a_sequence_takes_its_place(projection: Projection) -> None:
    first, _, third, fourth = _four_events()
    entries: list[LogEntry] = [
        Happened(0, first),
        Unread(1, Sequence(1)),
        Happened(2, third),
        Happened(3, fourth),
    ]
    assert await projection.apply(Batch(PARTITION, entries, 9)) == Position(PARTITION, fourth.sequence, 9)


async def test_one_unread_record_hides_no_second_hole(projection: Projection) -> None:
    first, _, _, fourth = _four_events()
    with pytest.raises(SequenceGap):
        await projection.apply(Batch(PARTITION, [Happened(0, first), Unread(1), Happened(3, fourth)], 4))


def _four_events() -> tuple[Transition, Transition, Transition, Transition]:
    story = Story()
    for number in range(4):
        story.enqueue(f"default/job-{number}")
    first, second, third, fourth = story.events
    return first, second, third, fourth
