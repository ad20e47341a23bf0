"""Schedules: put, remove, trigger, ticks and no overlap (contract section 3, Schedules)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.core.playing import (
    Script,
    cancel,
    claim,
    dead,
    enqueue,
    failure,
    put_schedule,
    remove_schedule,
    report,
    requeue,
    success,
    time_of,
    trigger,
)

from tidelog.core.decide import decide, fire_timers
from tidelog.core.state import PartitionState
from tidelog_events.identity import JobId, Partition, partition_of
from tidelog_events.instants import SECOND, Instant
from tidelog_events.parsing import parse_command
from tidelog_events.transitions import Enqueued, SchedulePut, ScheduleTicked, Transition
from tidelog_events.wire import WireObject

DAY = 24 * 3_600
MINUTELY = "* * * * *"
DAILY = "0 3 * * *"


def tick_id(seconds: int, schedule_id: str = "q/s") -> str:
    """The job of the tick so many seconds after the start."""
    return f"{schedule_id}@{time_of(seconds).replace('-', '').replace(':', '')}"


class TestPutting:
    def test_the_whole_definition_and_the_next_tick_are_told(self) -> None:
        printed = Script().do(
            30,
            put_schedule(
                "q/s",
                MINUTELY,
                time_zone="Europe/Berlin",
                payload={"a": 1},
                tags=["t", {"k": "v"}],
                retry={"max_attempts": 3},
                catch_up="Coalesce",
                no_overlap=True,
                actor="ann",
                command_id="c",
            ),
        )

        assert printed.event == {
            "type": "schedule_put",
            "at": time_of(30),
            "partition": 0,
            "sequence": 0,
            "cause_command_id": "c",
            "actor": "ann",
            "schedule_id": "q/s",
            "queue": "q",
            "cron": MINUTELY,
            "time_zone": "Europe/Berlin",
            "wire_name": "work",
            "payload": {"a": 1},
            "tags": ["t", {"k": "v"}],
            "retry": {"max_attempts": 3, "delays": None},
            "catch_up": "Coalesce",
            "no_overlap": True,
            "next_due": time_of(60),
        }
        assert (printed.reply["result"], printed.reply["sequence"]) == ("Ok", 0)

    def test_it_starts_now_and_not_with_the_tick_of_this_instant(self) -> None:
        script = Script()
        script.do(60, put_schedule("q/s", MINUTELY))

        assert script.wait(119).lines == []
        assert script.wait(120).steps == ["schedule_ticked q/s", f"enqueued {tick_id(120)}"]

    def test_a_new_definition_counts_from_when_it_is_put(self) -> None:
        script = Script()
        script.do(0, put_schedule("q/s", "0 * * * *", catch_up="Coalesce"))
        script.do(1_800, put_schedule("q/s", "10 * * * *", catch_up="Coalesce", wire_name="other"))

        assert script.wait(4_000).steps == []
        printed = script.wait(4_200)
        assert printed.steps == ["schedule_ticked q/s", f"enqueued {tick_id(4_200)}"]
        assert printed.transitions[1]["wire_name"] == "other"

    def test_the_same_definition_again_writes_nothing_and_misses_no_tick(self) -> None:
        script = Script()
        script.do(0, put_schedule("q/s", MINUTELY))

        assert script.do(59, put_schedule("q/s", MINUTELY)).steps == []
        assert script.do(60, put_schedule("q/s", MINUTELY)).steps == [
            "schedule_ticked q/s",
            f"enqueued {tick_id(60)}",
        ]

    @pytest.mark.parametrize(
        "changed",
        [
            {"cron": "*/2 * * * *"},
            {"time_zone": "Europe/Berlin"},
            {"wire_name": "other"},
            {"payload": [2]},
            {"tags": ["other"]},
            {"retry": {"max_attempts": 4}},
            {"catch_up": "Coalesce"},
            {"no_overlap": True},
        ],
    )
    def test_one_that_differs_in_anything_is_put(self, changed: WireObject) -> None:
        script = Script()
        definition = put_schedule("q/s", MINUTELY, payload=[1], tags=["t"], retry={"max_attempts": 3})
        script.do(0, definition)

        assert script.do(1, definition | {"command_id": "again"}).steps == []
        assert script.do(2, definition | changed).steps == ["schedule_put q/s"]

    def test_missed_ticks_of_the_old_definition_are_settled_first(self) -> None:
        """An engine fires only so many timers before it looks at commands."""
        state = PartitionState(Partition(0), 1)
        decide(state, parse_command(put_schedule("q/s", "0 * * * *", catch_up="Coalesce")), Instant(0), (0,))
        again = parse_command(put_schedule("q/s", DAILY, command_id="c"))
        ticked, made_up, put = events(decide(state, again, Instant(12_000 * SECOND), (1,)).outputs)

        assert isinstance(ticked, ScheduleTicked)
        assert (ticked.skipped_count, ticked.cause_command_id) == (2, None)
        assert isinstance(made_up, Enqueued)
        assert made_up.due_time == 10_800 * SECOND
        assert isinstance(put, SchedulePut)
        assert put.cause_command_id == "c"

    def test_what_never_fires_in_its_zone_is_invalid(self) -> None:
        script = Script()
        printed = script.do(0, put_schedule("q/s", "*/5 2 * 3 0L", time_zone="Europe/Berlin"))

        assert printed.reply["result"] == "Invalid"
        assert printed.reply["field"] == "cron"
        assert "Europe/Berlin" in printed.reply["message"]
        assert printed.transitions == []
        assert script.do(1, remove_schedule("q/s")).reply["result"] == "ScheduleNotFound"

    @pytest.mark.parametrize(
        ("fields", "field", "told"),
        [
            ({"cron": "61 * * * *"}, "cron", "minute"),
            ({"cron": "0 0 31 2 *"}, "cron", "day-of-month"),
            ({"time_zone": "Mars/Olympus"}, "time_zone", "Mars/Olympus"),
            ({"payload": "p" * 65_535}, "payload", "65537"),
            ({"wire_name": "w" * 129}, "wire_name", "128"),
        ],
    )
    def test_a_refusal_names_the_field(self, fields: WireObject, field: str, told: str) -> None:
        script = Script()
        printed = script.do(0, {**put_schedule("q/s", MINUTELY), **fields})

        assert printed.reply["result"] == "Invalid"
        assert printed.reply["field"] == field
        assert told in printed.reply["message"]
        assert script.wait(DAY).lines == []


class TestRemoving:
    def test_a_schedule_that_is_put_again_counts_the_instances_of_before(self) -> None:
        script = Script()
        script.do(0, put_schedule("q/s", MINUTELY))
        script.wait(60)
        script.do(61, remove_schedule("q/s"))
        script.do(62, put_schedule("q/s", MINUTELY, no_overlap=True))

        assert script.wait(120).event["skipped"] == [time_of(120)]
        script.do(130, cancel(tick_id(60)))
        assert script.wait(180).steps == ["schedule_ticked q/s", f"enqueued {tick_id(180)}"]

    def test_ticks_that_are_due_by_now_are_settled_first(self) -> None:
        state = PartitionState(Partition(0), 1)
        decide(state, parse_command(put_schedule("q/s", MINUTELY)), Instant(0), (0,))
        decision = decide(state, parse_command(remove_schedule("q/s")), Instant(60 * SECOND), (1,))

        assert [event.TYPE for event in events(decision.outputs)] == [
            "schedule_ticked",
            "enqueued",
            "schedule_removed",
        ]
        assert events(fire_timers(state, Instant(600 * SECOND)).outputs) == []


class TestTicking:
    def test_each_instance_is_as_the_schedule_defines_it(self) -> None:
        script = Script()
        script.do(
            0,
            put_schedule(
                "q/s",
                MINUTELY,
                payload=[1],
                tags=["t"],
                retry={"max_attempts": 2, "delays": [5]},
                actor="ann",
            ),
        )
        ticked, born = script.wait(60).transitions

        assert ticked["minted"] == [tick_id(60)]
        assert (ticked["skipped"], ticked["skipped_count"]) == ([], 0)
        assert ticked["next_due"] == time_of(120)
        assert (born["payload"], born["tags"]) == ([1], ["t"])
        assert born["retry"] == {"max_attempts": 2, "delays": [5]}
        assert (born["schedule_id"], born["due_time"], born["at"]) == ("q/s", time_of(60), time_of(60))
        assert "actor" not in born
        assert "cause_command_id" not in born

    def test_a_parked_claim_is_served_at_the_tick(self) -> None:
        script = Script()
        script.do(0, put_schedule("q/s", MINUTELY))
        script.do(50, claim("q", "w", wait_seconds=30, command_id="c"))

        assert script.wait(60).granted == [tick_id(60)]

    def test_a_tick_whose_job_id_exists_is_skipped(self) -> None:
        script = Script()
        script.do(0, put_schedule("q/s", MINUTELY))
        script.do(1, enqueue(tick_id(60)))
        (ticked,) = script.wait(60).transitions

        assert (ticked["minted"], ticked["skipped"], ticked["skipped_count"]) == ([], [time_of(60)], 1)

    def test_a_job_that_asks_after_its_parents_exists(self) -> None:
        elsewhere = next(f"r{number}" for number in range(99) if partition_of(f"r{number}", 2) == 1)
        here = next(f"q{number}" for number in range(99) if partition_of(f"q{number}", 2) == 0)
        state = PartitionState(Partition(0), 2)
        decide(state, parse_command(put_schedule(f"{here}/s", MINUTELY)), Instant(0), (0,))
        pending = enqueue(f"{here}/s@19700101T000100Z", parents=[f"{elsewhere}/p"])
        decide(state, parse_command(pending), Instant(0), (1,))
        (ticked,) = events(fire_timers(state, Instant(60 * SECOND)).outputs)

        assert isinstance(ticked, ScheduleTicked)
        assert (ticked.minted, ticked.skipped_count) == ((), 1)

    def test_at_one_instant_leases_expire_then_schedules_tick_by_id_then_jobs_go(self) -> None:
        script = Script()
        script.do(0, enqueue("q/ended"))
        script.do(0, cancel("q/ended"))
        script.do(DAY - 60, enqueue("q/held", retry={"max_attempts": 1}))
        script.do(DAY - 60, claim("q", "w", lease_seconds=60))
        for schedule_id in ("q/b", "q/a", "q/C"):
            script.do(DAY - 30, put_schedule(schedule_id, "0 0 * * *"))

        assert [step for step in script.wait(DAY).steps if not step.startswith("enqueued")] == [
            "lease_expired q/held",
            "schedule_ticked q/C",
            "schedule_ticked q/a",
            "schedule_ticked q/b",
            "purged q/ended",
        ]

    @pytest.mark.parametrize(
        "large", [{"payload": "p" * 50_000}, {"tags": [{f"{n:0200}": f"{n:0200}"} for n in range(32)]}]
    )
    def test_only_so_many_tick_in_one_decision_and_the_rest_in_the_next(self, large: WireObject) -> None:
        """What one transaction writes is bounded; a large payload counts for more, and so do many tags."""
        state = PartitionState(Partition(0), 1)
        for name in "abc":
            command = put_schedule(f"q/{name}", MINUTELY, **large)
            decide(state, parse_command(command), Instant(0), (0,))
        now = Instant(60 * SECOND)
        ticked = []
        while (due := state.next_timer()) is not None and due <= now:
            decision = fire_timers(state, now, 90)
            ticked.append([e.schedule_id for e in decision.outputs if isinstance(e, ScheduleTicked)])

        assert ticked == [["q/a"], ["q/b"], ["q/c"]]

    def test_too_many_that_tick_every_second_take_turns(self) -> None:
        state = PartitionState(Partition(0), 1)
        for name in "abc":
            decide(state, parse_command(put_schedule(f"q/{name}", "* * * * * *")), Instant(0), (0,))
        ticked = []
        for second in range(1, 7):
            outputs = fire_timers(state, Instant(second * SECOND), 1).outputs
            ticked += [event.schedule_id for event in events(outputs) if isinstance(event, ScheduleTicked)]

        assert ticked == ["q/a", "q/b", "q/c", "q/a", "q/b", "q/c"]


class TestNoOverlap:
    @pytest.fixture
    def script(self) -> Script:
        script = Script()
        retry = {"max_attempts": 2, "delays": [150]}
        script.do(0, put_schedule("q/s", MINUTELY, no_overlap=True, retry=retry))
        script.wait(60)
        return script

    def test_waiting_running_and_waiting_for_a_retry_all_hold_back_ticks(self, script: Script) -> None:
        assert script.wait(120).event["skipped"] == [time_of(120)]
        script.do(121, claim("q", "w", lease_seconds=600))
        assert script.wait(180).event["skipped"] == [time_of(180)]
        script.do(181, report("w", failure(tick_id(60))))
        assert script.wait(300).transitions[-1]["skipped"] == [time_of(300)]

    @pytest.mark.parametrize("last", [success(tick_id(60)), dead(tick_id(60))])
    def test_any_end_lets_the_next_tick_mint(self, script: Script, last: WireObject) -> None:
        script.do(61, claim("q", "w"))
        script.do(62, report("w", last))

        assert script.wait(120).steps == ["schedule_ticked q/s", f"enqueued {tick_id(120)}"]

    def test_a_requeued_instance_holds_back_ticks_again(self, script: Script) -> None:
        script.do(61, claim("q", "w"))
        script.do(62, report("w", dead(tick_id(60))))
        script.do(63, requeue(tick_id(60)))

        assert script.wait(120).event["skipped"] == [time_of(120)]

    def test_a_job_that_was_enqueued_for_the_schedule_is_an_instance(self, script: Script) -> None:
        script.do(61, cancel(tick_id(60)))
        script.do(62, enqueue("q/own", schedule_id="q/s"))

        assert script.wait(120).event["skipped"] == [time_of(120)]


class TestTriggering:
    @pytest.fixture
    def script(self) -> Script:
        script = Script()
        script.do(0, put_schedule("q/s", DAILY, payload=5, no_overlap=True))
        return script

    def test_the_instance_is_due_now_and_explained(self, script: Script) -> None:
        printed = script.do(100, trigger("q/s", actor="ann", command_id="go"))
        triggered, born = printed.transitions

        assert (triggered["type"], triggered["job_id"]) == ("schedule_triggered", "q/s@trigger-go")
        assert (born["job_id"], born["due_time"]) == ("q/s@trigger-go", time_of(100))
        for event in (triggered, born):
            assert (event["actor"], event["cause_command_id"]) == ("ann", "go")
        assert printed.reply["job_id"] == "q/s@trigger-go"
        assert printed.reply["sequence"] == 2

    def test_it_ignores_other_instances_and_holds_back_ticks(self, script: Script) -> None:
        script.do(100, trigger("q/s", command_id="a"))
        assert script.do(100, trigger("q/s", command_id="b")).reply["result"] == "Triggered"

        ticked = script.wait(3 * 3_600).event
        assert (ticked["minted"], ticked["skipped_count"]) == ([], 1)
        assert ticked["next_due"] == "2026-01-02T03:00:00Z"

    @pytest.mark.parametrize("command_id", ["go", "a b", "", "ü"])
    def test_the_same_command_again_is_answered_with_the_same_job(
        self, script: Script, command_id: str
    ) -> None:
        first = script.do(100, trigger("q/s", command_id=command_id))
        again = script.do(200, trigger("q/s", command_id=command_id))

        assert first.reply["job_id"] == ("q/s@trigger-go" if command_id == "go" else "q/s@trigger-1")
        assert (again.reply["result"], again.reply["job_id"]) == ("Triggered", first.reply["job_id"])
        assert again.transitions == []

    @pytest.mark.parametrize("command_id", ["go", "a b"])
    def test_after_its_instance_is_purged_it_mints_again(self, script: Script, command_id: str) -> None:
        job_id = script.do(100, trigger("q/s", command_id=command_id)).reply["job_id"]
        script.do(101, cancel(job_id))
        assert f"purged {job_id}" in script.wait(101 + DAY).steps

        assert len(script.do(102 + DAY, trigger("q/s", command_id=command_id)).transitions) == 2

    def test_a_job_that_has_the_name_already_is_left_alone(self, script: Script) -> None:
        script.do(1, enqueue("q/s@trigger-go", command_id="x"))
        script.do(1, enqueue("q/s@trigger-3", command_id="y"))
        printed = script.do(2, trigger("q/s", command_id="go"))

        assert printed.reply["job_id"] == "q/s@trigger-3-1"
        assert script.do(3, trigger("q/s", command_id="go")).reply["job_id"] == "q/s@trigger-3-1"

    def test_without_a_command_id_each_one_mints(self) -> None:
        state = PartitionState(Partition(0), 1)
        decide(state, parse_command(put_schedule("q/s", DAILY)), Instant(0), (0,))
        for position in (1, 2):
            decide(state, parse_command(trigger("q/s")), Instant(0), (position,))

        assert set(state.jobs) == {JobId("q/s@trigger-1"), JobId("q/s@trigger-3")}


def events(outputs: Sequence[object]) -> list[Transition]:
    return [output for output in outputs if isinstance(output, Transition)]
