"""Schedules in Postgres: as they are defined, when due, what they minted and skipped, by whose wish."""

from __future__ import annotations

import pytest
from tests.projection.log import TOPICS, ForgetfulStore, append, new_log
from tests.projection.story import DAY, START, Story, batch_of, records_of
from tests.projection.tables import Tables

from tidelog.projector import rebuild
from tidelog_events.bounds import MAX_SCHEDULE_SKIPS
from tidelog_events.identity import QueueName, ScheduleId
from tidelog_events.instants import SECOND, Instant, parse_instant
from tidelog_events.jsontext import Json
from tidelog_events.schedule_record import SCHEDULE_FIELDS
from tidelog_events.schedule_view import ScheduleView
from tidelog_events.states import CatchUp, JobState
from tidelog_events.zones import BUNDLED, ZoneDatabase
from tidelog_projections.projection import Projection

NIGHTLY = ScheduleId("default/nightly")
HOUR = 3_600


def put(story: Story, schedule_id: str = NIGHTLY, **fields: Json) -> None:
    """Put a schedule that fires every hour unless it is said otherwise."""
    story.do(
        "put_schedule", **{"schedule_id": schedule_id, "cron": "0 * * * *", "wire_name": "work", **fields}
    )


async def viewed(projection: Projection, story: Story) -> ScheduleView:
    """The one schedule, which must be the record that the engine has."""
    [view] = await projection.schedules()
    engine = story.state.timetable.schedules[view.schedule_id]
    for name in SCHEDULE_FIELDS:
        assert getattr(view, name) == getattr(engine, name), name
    return view


async def test_a_schedule_is_shown_as_it_was_put(projection: Projection, tables: Tables) -> None:
    story = Story()
    put(
        story,
        cron="0 3 * * *",
        time_zone="Europe/Berlin",
        payload={"b": [1, None], "a": 10**30},
        tags=["red", {"tenant": "acme"}],
        retry={"max_attempts": 3, "delays": [1, 5]},
        catch_up="Coalesce",
        no_overlap=True,
        actor="ann",
    )
    await projection.apply(batch_of(story.events))
    view = await viewed(projection, story)
    assert (view.queue, view.cron, view.time_zone) == ("default", "0 3 * * *", "Europe/Berlin")
    assert view.payload == b'{"b":[1,null],"a":1000000000000000000000000000000}'
    assert (view.catch_up, view.no_overlap, view.put_by, view.put_at) == (
        CatchUp.COALESCE,
        True,
        "ann",
        START,
    )
    assert view.next_due == parse_instant("2026-01-01T02:00:00Z")
    assert (view.last_job_id, view.last_job_state, view.last_skipped, view.skipped_count) == (
        None,
        None,
        None,
        0,
    )
    [row] = await tables.rows("SELECT next_due::text, tags::text, retry::text, error FROM schedules")
    assert row["tags"] == '["red",{"tenant":"acme"}]'
    assert row["retry"] == '{"max_attempts":3,"delays":[1,5]}'
    assert await projection.schedule(NIGHTLY) == view
    assert await projection.schedules(QueueName("other")) == []
    assert await projection.schedule(ScheduleId("default/none")) is None


async def test_ticks_move_it_on_and_its_newest_job_is_shown(projection: Projection) -> None:
    story = Story()
    put(story)
    story.pass_time(2.5 * HOUR)
    await projection.apply(batch_of(story.events))
    view = await viewed(projection, story)
    assert view.last_job_id == "default/nightly@20260101T020000Z"
    assert view.last_job_state is JobState.SCHEDULED
    assert view.next_due == START + 3 * HOUR * SECOND
    done = len(story.events)
    story.do("trigger_schedule", schedule_id=NIGHTLY, actor="ann")
    await projection.apply(batch_of(story.events[done:]))
    view = await viewed(projection, story)
    assert view.last_job_id == "default/nightly@trigger-command-2"
    assert view.next_due == START + 3 * HOUR * SECOND


async def test_skipped_ticks_are_counted_and_the_newest_are_kept(projection: Projection) -> None:
    story = Story()
    put(story, no_overlap=True)
    story.pass_time(HOUR)
    story.pass_time((MAX_SCHEDULE_SKIPS + 6) * HOUR)
    for first in range(0, len(story.events), 7):
        await projection.apply(batch_of(story.events[first : first + 7]))
    view = await viewed(projection, story)
    assert view.skipped_count == MAX_SCHEDULE_SKIPS + 6
    assert view.last_skipped == story.state.now
    skips = await projection.schedule_skips(NIGHTLY)
    newest = [Instant(story.state.now - ago * HOUR * SECOND) for ago in range(MAX_SCHEDULE_SKIPS)]
    assert [skip.tick for skip in skips] == newest[::-1]
    assert all(skip.at == skip.tick for skip in skips)


async def test_a_late_decision_shows_its_newest_skips_and_all_in_the_count(projection: Projection) -> None:
    story = Story()
    put(story, cron="* * * * * *", catch_up="Coalesce")
    story.be_away(10 * DAY)
    await projection.apply(batch_of(story.events))
    view = await viewed(projection, story)
    minted = sum(event.TYPE == "enqueued" for event in story.events)
    assert view.skipped_count == 10 * DAY - minted
    skips = await projection.schedule_skips(NIGHTLY)
    assert len(skips) == 32  # as many as one decision lists
    assert {skip.at for skip in skips} == {story.state.now}


async def test_one_whose_zone_is_gone_shows_why_it_stands_still_until_it_is_back(
    projection: Projection, tables: Tables
) -> None:
    story = Story()
    put(story, cron="0 3 * * *", time_zone="Europe/Berlin")
    put(story, "default/other")
    story.state.timetable.zones = ZoneDatabase("a release without Berlin", {"UTC": "UTC"})
    story.pass_time(2.5 * HOUR)
    await projection.apply(batch_of(story.events))
    broken, other = await projection.schedules()
    assert (broken.schedule_id, broken.next_due) == (NIGHTLY, None)
    assert broken.error is not None
    assert "Europe/Berlin" in broken.error
    assert (other.error, other.last_job_id) == (None, "default/other@20260101T020000Z")

    done = len(story.events)
    story.state.timetable.zones = BUNDLED
    story.pass_time(DAY)
    await projection.apply(batch_of(story.events[done:]))
    mended, _ = await projection.schedules()
    assert (mended.error, mended.next_due) == (None, parse_instant("2026-01-03T02:00:00Z"))
    assert [row["action"] for row in await tables.rows("SELECT action FROM audit")] == ["put_schedule"] * 2


async def test_another_definition_keeps_what_was_counted_and_a_removal_keeps_nothing(
    projection: Projection, tables: Tables
) -> None:
    story = Story()
    put(story, no_overlap=True, actor="ann")
    story.pass_time(3 * HOUR)
    put(story, cron="30 * * * *", payload=5, actor="bob")
    await projection.apply(batch_of(story.events))
    view = await viewed(projection, story)
    assert (view.cron, view.payload, view.put_by) == ("30 * * * *", b"5", "bob")
    assert (view.skipped_count, view.last_job_id) == (2, "default/nightly@20260101T010000Z")

    done = len(story.events)
    story.do("remove_schedule", schedule_id=NIGHTLY, actor="cleo")
    await projection.apply(batch_of(story.events[done:]))
    assert await projection.schedules() == []
    assert await projection.schedule_skips(NIGHTLY) == []
    done = len(story.events)
    put(story, actor="dan")
    await projection.apply(batch_of(story.events[done:]))
    view = await viewed(projection, story)
    assert (view.skipped_count, view.last_job_id) == (0, None)
    rows = await tables.rows("SELECT actor, action, target FROM audit ORDER BY sequence")
    assert [tuple(row.values()) for row in rows] == [
        ("ann", "put_schedule", "default/nightly"),
        ("bob", "put_schedule", "default/nightly"),
        ("cleo", "remove_schedule", "default/nightly"),
        ("dan", "put_schedule", "default/nightly"),
    ]


async def test_only_commands_with_an_effect_are_audited(projection: Projection, tables: Tables) -> None:
    story = Story()
    put(story, actor="ann")
    put(story, actor="bob")  # the same definition
    story.do("trigger_schedule", schedule_id=NIGHTLY, actor="cleo", command_id="go")
    story.do("trigger_schedule", schedule_id=NIGHTLY, actor="cleo", command_id="go")
    story.do("trigger_schedule", schedule_id="default/none", actor="dan")
    story.do("remove_schedule", schedule_id="default/none", actor="dan")
    story.pass_time(2 * HOUR)
    await projection.apply(batch_of(story.events))
    rows = await tables.rows("SELECT actor, action FROM audit ORDER BY sequence")
    assert [tuple(row.values()) for row in rows] == [("ann", "put_schedule"), ("cleo", "trigger_schedule")]
    assert (await viewed(projection, story)).put_by == "ann"


async def test_a_job_that_was_purged_is_still_named(projection: Projection) -> None:
    story = Story()
    put(story, cron="0 1 1 1 *")
    story.pass_time(HOUR)
    job_id = "default/nightly@20260101T010000Z"
    story.do("cancel", job_id=job_id)
    story.pass_time(DAY + 1)
    await projection.apply(batch_of(story.events))
    view = await viewed(projection, story)
    assert (view.last_job_id, view.last_job_state) == (job_id, None)


@pytest.mark.parametrize("is_forgotten", [False, True])
async def test_a_rebuild_takes_schedules_from_the_state(
    projection: Projection, tables: Tables, *, is_forgotten: bool
) -> None:
    """Also when the log no longer has the event that defined them, nor those that skipped ticks."""
    store = ForgetfulStore()
    log = await new_log(store=store)
    story = Story()
    put(story, payload={"big": 10**30}, tags=["nul\0"], no_overlap=True, actor="nul\0")
    story.pass_time(5 * HOUR)
    await append(log, [*records_of(story.events, TOPICS), *story.changelog(TOPICS)])
    await projection.apply(batch_of(story.events))
    before = await tables.everything()
    await tables.rows("TRUNCATE schedules, schedule_skips")
    if is_forgotten:
        store.forget()
        done = len(story.events)
        story.pass_time(HOUR)
        await append(log, [*records_of(story.events[done:], TOPICS), *story.changelog(TOPICS)])

    await rebuild(log, TOPICS, projection)
    if not is_forgotten:
        assert await tables.everything() == before
        return
    [view] = await projection.schedules()
    assert (view.skipped_count, view.put_by) == (5, "nul\u2400")
    assert [skip.tick for skip in await projection.schedule_skips(NIGHTLY)] == [story.state.now]


async def test_what_a_row_has_in_it_already_is_not_counted_again(projection: Projection) -> None:
    """After a rebuild rows are ahead of the position, and a batch may hold events of before and after."""
    story = Story()
    put(story, no_overlap=True)
    story.pass_time(5 * HOUR)
    log = await new_log()
    await append(log, story.changelog(TOPICS))
    await rebuild(log, TOPICS, projection)
    assert (await viewed(projection, story)).skipped_count == 4
    async with projection.postgres.session() as connection:
        await connection.execute("UPDATE tidelog.projection_position SET sequence = -1, next_offset = 0")
    story.pass_time(2 * HOUR)
    await projection.apply(batch_of(story.events))
    assert (await viewed(projection, story)).skipped_count == 6
