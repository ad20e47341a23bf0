"""Random schedules and time against one partition: each tick is minted or skipped once, and as it was asked.

`TIDELOG_RANDOM=slow` looks much longer.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.core import playing
from tests.core.schedule_witness import EVERY
from tests.core.twins import TwinMachine

from tidelog_events.instants import SECOND, Instant
from tidelog_events.states import JobState

SCHEDULE_IDS = st.sampled_from(["q/s", "q/t"])


class ScheduleMachine(TwinMachine):
    @rule(
        schedule_id=SCHEDULE_IDS,
        cron=st.sampled_from(list(EVERY)),
        catch_up=st.sampled_from(["Skip", "Coalesce"]),
        no_overlap=st.booleans(),
    )
    def put(self, schedule_id: str, cron: str, catch_up: str, no_overlap: bool) -> None:
        self.command(playing.put_schedule(schedule_id, cron, catch_up=catch_up, no_overlap=no_overlap))

    @rule(schedule_id=SCHEDULE_IDS)
    def remove(self, schedule_id: str) -> None:
        self.command(playing.remove_schedule(schedule_id))

    @rule(schedule_id=SCHEDULE_IDS, command_id=st.sampled_from(["c", "no key", None]))
    def trigger(self, schedule_id: str, command_id: str | None) -> None:
        self.command(playing.trigger(schedule_id, command_id=command_id))

    @rule(schedule_id=SCHEDULE_IDS)
    def enqueue_what_the_next_tick_would(self, schedule_id: str) -> None:
        minute, second = divmod(self.now // SECOND // 20 * 20 + 20, 60)
        hour, minute = divmod(minute, 60)
        key = f"19700101T{hour:02}{minute:02}{second:02}Z"
        self.command(playing.enqueue(f"{schedule_id}@{key}", schedule_id=schedule_id))

    @rule()
    def cancel_all(self) -> None:
        for job in self.witness.in_state(JobState.SCHEDULED):
            self.command(playing.cancel(job.job_id))

    @rule()
    def dead_letter_one(self) -> None:
        self.command(playing.claim("q", "w"))
        for job in self.witness.in_state(JobState.LEASED):
            self.command(playing.report("w", playing.dead(job.job_id, job.attempt)))

    @rule()
    def requeue_one(self) -> None:
        for job in self.witness.in_state(JobState.DEAD_LETTERED)[:1]:
            self.command(playing.requeue(job.job_id))

    @rule(seconds=st.integers(1, 20))
    def time_passes_to_a_whole_number_of_seconds(self, seconds: int) -> None:
        """Where ticks are, and where they are just a minute late."""
        step = seconds * 20 * SECOND
        self.now = Instant((self.now // step + 1) * step)
        self.timers()


_slow = os.environ.get("TIDELOG_RANDOM") == "slow"
TestRandomSchedules = ScheduleMachine.TestCase
TestRandomSchedules.settings = settings(
    max_examples=1_500 if _slow else 100,
    stateful_step_count=60 if _slow else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
