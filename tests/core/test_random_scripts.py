"""Random commands and time against one partition: what never happens, and that a restart changes nothing.

Two states are driven side by side. One lives on; the other is thrown away and rebuilt from the changelog at
random. They must decide alike, whatever comes. `TIDELOG_RANDOM=slow` looks much longer.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from tests.core import playing
from tests.core.schedule_witness import EVERY
from tests.core.twins import TwinMachine

from tidelog.core.decision import Addressed
from tidelog_events.identity import JobId, QueueName
from tidelog_events.replies import CancelRequestedPush, ReportReply, RowResult
from tidelog_events.states import JobState
from tidelog_events.transitions import Leased
from tidelog_events.wire import WireObject

QUEUES = st.sampled_from(["q", "r"])
ALL_JOB_IDS = [f"{queue}/{number}" for queue in "qr" for number in range(8)]
JOB_IDS = st.sampled_from(ALL_JOB_IDS)
SCHEDULE_IDS = st.sampled_from(["q/s", "q/t", "r/s"])
MODES = st.sampled_from(["OnSuccess", "OnAnyTerminal"])
DUE_TIMES = st.sampled_from([None, None, None, "1970-01-01T00:00:20Z", "1970-01-01T00:00:00Z"])
ERRORS = st.sampled_from([None] * 9 + ["attempt", "lease", "worker"])
WORKERS = st.sampled_from(["v", "w"])
DELAYS = st.sampled_from([0, 0.5, 1, 3, 7])
COMMAND_IDS = st.sampled_from(["c", "d", None])
RETRIES = st.one_of(
    st.none(),
    st.builds(
        lambda tries, delays: {"max_attempts": tries, "delays": delays},
        st.integers(1, 3),
        st.lists(DELAYS, min_size=1, max_size=2),
    ),
)
OUTCOMES: st.SearchStrategy[WireObject] = st.sampled_from(
    [
        {"outcome": "Success", "output": 7, "add_tags": ["done"]},
        {"outcome": "Success", "output": "too large"},
        {"outcome": "Failure", "error": "e"},
        {"outcome": "Failure", "error": "e", "next_due": None},
        {"outcome": "Failure", "error": "e", "next_due": "1970-01-01T00:00:05Z", "add_tags": ["tried"]},
        {"outcome": "Failure", "error": "e", "next_due": "1970-01-01T00:01:00Z"},
        {"outcome": "Cancelled"},
        {"outcome": "Unroutable", "reason": "r"},
        {"outcome": "Returned"},
    ]
)


class PartitionMachine(TwinMachine):
    @rule(data=st.data(), count=st.integers(1, 4), retry=RETRIES, command_id=COMMAND_IDS)
    def enqueue(
        self, data: st.DataObject, count: int, retry: WireObject | None, command_id: str | None
    ) -> None:
        """Bear jobs under free ids, mostly below jobs that are there."""
        for _ in range(count):
            free = [job_id for job_id in ALL_JOB_IDS if JobId(job_id) not in self.witness.jobs]
            if not free:
                return
            known = sorted(self.witness.jobs)
            parents = data.draw(st.lists(st.sampled_from(known), max_size=3)) if known else []
            self.command(
                playing.enqueue(
                    data.draw(st.sampled_from(free)),
                    parents=parents,
                    mode=data.draw(MODES),
                    due_time=data.draw(DUE_TIMES),
                    retry=retry,
                    command_id=command_id,
                )
            )

    @rule(job_id=JOB_IDS, parents=st.lists(JOB_IDS, max_size=2), mode=MODES, command_id=COMMAND_IDS)
    def enqueue_blindly(self, job_id: str, parents: list[str], mode: str, command_id: str | None) -> None:
        """Under any id, perhaps a taken one, below any others, perhaps unknown ones."""
        self.command(playing.enqueue(job_id, parents=parents, mode=mode, command_id=command_id))

    @rule(data=st.data(), queue=QUEUES, worker=WORKERS, max_jobs=st.integers(1, 4))
    def work(self, data: st.DataObject, queue: str, worker: str, max_jobs: int) -> None:
        """Claim, and report at once what was granted."""
        self.command(playing.claim(queue, worker, max_jobs=max_jobs, reply_to=f"inbox-{worker}"))
        held = [job for job in self.witness.in_state(JobState.LEASED) if job.lease_owner == worker]
        rows = [{**playing.lease(job.job_id, job.attempt), **data.draw(OUTCOMES)} for job in held]
        self.report_rows(worker, rows)

    @rule(
        queue=QUEUES,
        worker=WORKERS,
        max_jobs=st.integers(1, 4),
        lease_seconds=st.sampled_from([1, 2, 10]),
        wait_seconds=st.sampled_from([0, 0, 2, 5]),
    )
    def claim(self, queue: str, worker: str, max_jobs: int, lease_seconds: int, wait_seconds: int) -> None:
        self.timers()
        grantable = self.witness.grantable(QueueName(queue), self.now)
        decision = self.command(
            playing.claim(
                queue,
                worker,
                max_jobs=max_jobs,
                lease_seconds=lease_seconds,
                wait_seconds=wait_seconds,
                reply_to=f"inbox-{worker}",
            )
        )
        leased = [output for output in decision.outputs if isinstance(output, Leased)]
        assert len(leased) == min(max_jobs, grantable), "what is due is granted"

    @rule(data=st.data(), outcomes=st.lists(OUTCOMES, min_size=1, max_size=3))
    def report(self, data: st.DataObject, outcomes: list[WireObject]) -> None:
        worker, rows = self.rows_of_a_worker(data, len(outcomes))
        self.report_rows(worker, [{**row, **outcome} for row, outcome in zip(rows, outcomes, strict=True)])

    @rule(data=st.data(), seconds=st.sampled_from([0.5, 1, 4, 20]), count=st.integers(1, 3))
    def heartbeat(self, data: st.DataObject, seconds: float, count: int) -> None:
        worker, rows = self.rows_of_a_worker(data, count)
        self.command(playing.heartbeat(worker, *rows, lease_seconds=seconds))

    @rule(data=st.data(), actor=st.sampled_from([None, "ann"]))
    def cancel(self, data: st.DataObject, actor: str | None) -> None:
        leased = [record.job_id for record in self.witness.in_state(JobState.LEASED)]
        job_id = data.draw(st.sampled_from([*leased, *leased, *ALL_JOB_IDS]))
        self.timers()
        seen = self.witness.jobs.get(JobId(job_id))
        owner = None if seen is None else seen.record.lease_owner
        decision = self.command(playing.cancel(job_id, actor=actor))
        told = [
            output.to
            for output in decision.outputs
            if isinstance(output, Addressed) and isinstance(output.answer, CancelRequestedPush)
        ]
        assert told == ([] if owner is None else [f"inbox-{owner}"]), "the owner is told"

    @rule(job_id=JOB_IDS)
    def requeue(self, job_id: str) -> None:
        self.command(playing.requeue(job_id))

    @rule(
        schedule_id=SCHEDULE_IDS,
        cron=st.sampled_from(list(EVERY)),
        catch_up=st.sampled_from(["Skip", "Coalesce"]),
        no_overlap=st.booleans(),
    )
    def put_schedule(self, schedule_id: str, cron: str, catch_up: str, no_overlap: bool) -> None:
        self.command(playing.put_schedule(schedule_id, cron, catch_up=catch_up, no_overlap=no_overlap))

    @rule(schedule_id=SCHEDULE_IDS)
    def remove_schedule(self, schedule_id: str) -> None:
        self.command(playing.remove_schedule(schedule_id))

    @rule(schedule_id=SCHEDULE_IDS, command_id=st.sampled_from(["c", "d", "no key", None]))
    def trigger(self, schedule_id: str, command_id: str | None) -> None:
        self.command(playing.trigger(schedule_id, command_id=command_id))

    @rule(schedule_id=SCHEDULE_IDS, minute=st.integers(1, 9))
    def enqueue_what_a_tick_would(self, schedule_id: str, minute: int) -> None:
        self.command(playing.enqueue(f"{schedule_id}@19700101T000{minute}00Z", schedule_id=schedule_id))

    @rule(queue=QUEUES)
    def pause(self, queue: str) -> None:
        self.command(playing.pause(queue, actor="ann"))

    @rule(queue=QUEUES)
    def resume(self, queue: str) -> None:
        self.command(playing.resume(queue))

    @rule(queue=QUEUES, bound=st.sampled_from([None, 1, 2]))
    def limit(self, queue: str, bound: int | None) -> None:
        self.command(playing.limit(queue, bound))

    @invariant()
    def no_claim_waits_beside_work_that_it_could_have(self) -> None:
        for name in self.living.waiting_queues:
            assert self.witness.grantable(name, self.now) == 0

    def report_rows(self, worker: str, rows: list[WireObject]) -> None:
        for row in rows:
            if row.get("output") == "too large":
                row["output"] *= 10_000
        self.timers()
        held = [self.holds(worker, row) for row in rows]
        decision = self.command(playing.report(worker, *rows))
        (reply,) = [
            output.answer
            for output in decision.outputs
            if isinstance(output, Addressed) and isinstance(output.answer, ReportReply)
        ]
        for result, was_held in zip(reply.results, held, strict=True):
            assert was_held or result is RowResult.STALE_LEASE, "the fence holds"

    def holds(self, worker: str, row: WireObject) -> bool:
        """The fence, as the log alone tells it."""
        seen = self.witness.jobs.get(row["job_id"])
        if seen is None or seen.record.state is not JobState.LEASED:
            return False
        record = seen.record
        return (record.lease_owner, record.attempt, seen.lease) == (
            worker,
            row["attempt"],
            row.get("lease", seen.lease),
        )

    def rows_of_a_worker(self, data: st.DataObject, count: int) -> tuple[str, list[WireObject]]:
        """Leases that a worker holds, mostly: a row, or the worker, is wrong now and then."""
        held = self.witness.in_state(JobState.LEASED)
        if not held:
            return data.draw(WORKERS), [playing.lease(data.draw(JOB_IDS)) for _ in range(count)]
        rows: list[WireObject] = []
        worker = str(held[0].lease_owner)
        for _ in range(count):
            record = data.draw(st.sampled_from(held))
            lease = self.witness.jobs[record.job_id].lease
            assert lease is not None
            match data.draw(ERRORS):
                case "attempt":
                    rows.append(playing.lease(record.job_id, record.attempt + 1))
                case "lease":
                    rows.append(playing.lease(record.job_id, record.attempt, lease=lease - 1))
                case "worker":
                    worker = "somebody else"
                case _:
                    worker = str(record.lease_owner)
                    rows.append(playing.lease(record.job_id, record.attempt, lease=lease))
        return worker, rows + [playing.lease("q/none")] * (count - len(rows))


_slow = os.environ.get("TIDELOG_RANDOM") == "slow"
TestRandomScripts = PartitionMachine.TestCase
TestRandomScripts.settings = settings(
    max_examples=2_000 if _slow else 150,
    stateful_step_count=120 if _slow else 50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
