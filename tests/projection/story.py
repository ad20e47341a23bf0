"""Transitions as an engine would write them: commands decided by the core, on the test's own time."""

from __future__ import annotations

import random
from collections.abc import Sequence as SequenceOf

from tidelog.core.changelog import InputPositions, position_change, take_changes
from tidelog.core.decide import decide, end_parked_waits, fire_timers
from tidelog.core.decision import Decision
from tidelog.core.state import PartitionState
from tidelog.log.port import NewRecord
from tidelog.log.topics import Topics
from tidelog_events.codec import encode_transition
from tidelog_events.identity import JobId, Partition
from tidelog_events.instants import SECOND, Instant, parse_instant
from tidelog_events.jsontext import Json
from tidelog_events.parsing import parse_command
from tidelog_events.states import JobState
from tidelog_events.transitions import Transition
from tidelog_projections.batch import Batch, Happened

START = parse_instant("2026-01-01T00:00:00Z")
DAY = 86_400
PARTITION = Partition(0)


class Story:
    """One partition that takes commands. Every method returns the events of that step."""

    def __init__(self, partition: Partition = PARTITION) -> None:
        # The only partition of the core, whatever number its log gives it.
        self.state = PartitionState(partition, 1, now=START)
        self.events: list[Transition] = []
        self._commands = 0

    def do(self, type_: str, **fields: Json) -> list[Transition]:
        """Send a command."""
        self._commands += 1
        command = parse_command({"type": type_, "command_id": f"command-{self._commands}", **fields})
        return self._keep(decide(self.state, command, self.state.now, (self._commands,)))

    def enqueue(self, job_id: str = "default/job", **fields: Json) -> list[Transition]:
        """Enqueue a job of the wire name `work`."""
        return self.do("enqueue", **{"job_id": job_id, "wire_name": "work", **fields})

    def claim(
        self, queue: str = "default", max_jobs: int = 1, worker_id: str = "worker-1"
    ) -> list[Transition]:
        """Claim jobs for ten minutes."""
        return self.do("claim", queue=queue, max_jobs=max_jobs, worker_id=worker_id, lease_seconds=600)

    def report(
        self, job_id: str = "default/job", outcome: str = "Success", **fields: Json
    ) -> list[Transition]:
        """Report for the worker that holds the job."""
        job = self.state.jobs[JobId(job_id)]
        row: dict[str, Json] = {"job_id": job_id, "attempt": job.attempt, "outcome": outcome, **fields}
        return self.do("report", worker_id=job.lease_owner, outcomes=[row])

    def pass_time(self, seconds: float) -> list[Transition]:
        """Let time pass, and every timer fire at its instant."""
        events: list[Transition] = []
        until = Instant(self.state.now + round(seconds * SECOND))
        while (due := self.state.next_timer()) is not None and due <= until:
            fired = fire_timers(self.state, due)
            events += self._keep(fired)
            if not fired.outputs:
                events += self._keep(end_parked_waits(self.state, due))
        self.state.now = until
        return events

    def be_away(self, seconds: float) -> list[Transition]:
        """Let time pass without anybody there: what has fallen due meanwhile is late."""
        until = Instant(self.state.now + round(seconds * SECOND))
        events: list[Transition] = []
        while (due := self.state.next_timer()) is not None and due <= until:
            fired = fire_timers(self.state, until)
            events += self._keep(fired)
            if not fired.outputs:
                break
        self.state.now = until
        return events

    def changelog(self, topics: Topics) -> list[NewRecord]:
        """What an engine would write to the state topic for everything since the last call."""
        positions = position_change(self.state, InputPositions(commands=self._commands, links=0))
        return [
            NewRecord(topics.state, self.state.partition, change.key.encode(), change.value)
            for change in (*take_changes(self.state), positions)
        ]

    def _keep(self, decision: Decision) -> list[Transition]:
        events = [output for output in decision.outputs if isinstance(output, Transition)]
        self.events += events
        return events


def batch_of(events: SequenceOf[Transition]) -> Batch:
    """Consecutive events of a log in which each stands at the offset of its sequence."""
    entries = [Happened(event.sequence, event) for event in events]
    return Batch(events[0].partition, entries, events[-1].sequence + 1)


def records_of(events: SequenceOf[Transition], topics: Topics) -> list[NewRecord]:
    """Events as an engine would write them."""
    return [
        NewRecord(topics.transitions, event.partition, b"key", encode_transition(event)) for event in events
    ]


_QUEUES = ("alpha", "beta")
_KEYS = tuple(f"job-{number}" for number in range(12))
_TAGS: tuple[Json, ...] = ("red", "nul\0tag", {"tenant": "acme"}, {"tenant": "nul\0"}, "nul␀tag")


def random_story(seed: int, steps: int) -> Story:
    """A story in which everything happens that can: all outcomes, parents, cancels, purges, second lives."""
    story = Story()
    choose = random.Random(seed)  # noqa: S311  a test that can be repeated
    actions = (
        (_enqueue, 8),
        (_claim, 8),
        (_report, 10),
        (_on_a_job, 4),
        (_on_a_queue, 2),
        (_on_a_schedule, 2),
        (_pass_time, 3),
    )
    for _ in range(steps):
        action = choose.choices([action for action, _ in actions], [weight for _, weight in actions])[0]
        action(story, choose)
    return story


def _job_id(choose: random.Random) -> str:
    return f"{choose.choice(_QUEUES)}/{choose.choice(_KEYS)}"


def _enqueue(story: Story, choose: random.Random) -> None:
    known = sorted(story.state.jobs)
    story.enqueue(
        _job_id(choose),
        wire_name=choose.choice(["work", "nul\0name"]),
        payload={"text": "x\0y", "big": 10**30},
        parents=choose.sample(known, min(len(known), choose.choice([0, 0, 1, 3]))),
        mode=choose.choice(["OnSuccess", "OnAnyTerminal"]),
        tags=choose.sample(_TAGS, choose.choice([0, 1, 3])),
        retry={"max_attempts": choose.choice([1, 3]), "delays": [1]},
    )


def _claim(story: Story, choose: random.Random) -> None:
    story.claim(
        choose.choice(_QUEUES), max_jobs=choose.choice([1, 3]), worker_id=f"worker-{choose.choice('ab')}"
    )


def _report(story: Story, choose: random.Random) -> None:
    leased = [job_id for job_id, job in sorted(story.state.jobs.items()) if job.state is JobState.LEASED]
    if not leased:
        return
    job_id = choose.choice(leased)
    tags = choose.sample(_TAGS, choose.choice([0, 0, 2]))
    outcomes: tuple[dict[str, Json], ...] = (
        {"outcome": "Success", "output": {"big": 10**40}, "add_tags": tags},
        {"outcome": "Success"},
        {"outcome": "Failure", "error": "it\0broke", "failure_detail": "here\0", "add_tags": tags},
        {"outcome": "Failure", "error": "for good", "next_due": None},
        {"outcome": "Cancelled", "cause": "was told to"},
        {"outcome": "Unroutable", "reason": "nobody"},
        {"outcome": "Returned"},
    )
    fields = dict(choose.choice(outcomes))
    outcome = fields.pop("outcome")
    story.report(job_id, str(outcome), **fields)


def _on_a_job(story: Story, choose: random.Random) -> None:
    command = choose.choice(["cancel", "requeue", "requeue"])
    known: list[str] = [*sorted(story.state.jobs)] or [_job_id(choose)]
    story.do(command, job_id=choose.choice(known), actor=choose.choice([None, "ann\0"]))


def _on_a_queue(story: Story, choose: random.Random) -> None:
    queue = choose.choice(_QUEUES)
    match choose.choice(["pause_queue", "resume_queue", "resume_queue", "set_concurrency_limit"]):
        case "set_concurrency_limit":
            story.do("set_concurrency_limit", queue=queue, limit=choose.choice([None, 3, 5]), actor="bob")
        case control:
            story.do(control, queue=queue, actor="bob\0")


def _on_a_schedule(story: Story, choose: random.Random) -> None:
    schedule_id = f"{choose.choice(_QUEUES)}/every-{choose.choice('ab')}"
    match choose.choice(
        ["put_schedule", "put_schedule", "put_schedule", "trigger_schedule", "remove_schedule"]
    ):
        case "put_schedule":
            story.do(
                "put_schedule",
                schedule_id=schedule_id,
                cron=choose.choice(["0 */6 * * *", "30 3 * * *", "0 0 L * *"]),
                time_zone=choose.choice(["UTC", "Europe/Berlin"]),
                wire_name="nul\0name",
                payload={"text": "x\0y", "big": 10**30},
                tags=choose.sample(_TAGS, 2),
                catch_up=choose.choice(["Skip", "Coalesce"]),
                no_overlap=choose.choice([True, False]),
                actor=choose.choice([None, "ann\0"]),
            )
        case other:
            story.do(other, schedule_id=schedule_id, actor="bob\0")


def _pass_time(story: Story, choose: random.Random) -> None:
    pass_time = choose.choice([story.pass_time, story.pass_time, story.be_away])
    pass_time(choose.choice([1, 1, 1, 5, 5, 60, 60, 1_000, DAY, 15 * DAY]))
