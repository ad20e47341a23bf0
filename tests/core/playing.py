"""A script played line by line through `tidelog replay`'s own code, and what each line led to.

script = Script()
script.do(0, enqueue("q/a"))
printed = script.do(1, claim("q", "w"))
assert printed.steps == ["leased q/a"]
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat

import orjson

from tidelog.core.replay import Replay
from tidelog_events.wire import WireObject


@dataclass(frozen=True, slots=True)
class Printed:
    """What one line of a script led to, in order; timers that fired before it included."""

    lines: list[WireObject]

    @property
    def transitions(self) -> list[WireObject]:
        return [line["transition"] for line in self.lines if "transition" in line]

    @property
    def replies(self) -> list[WireObject]:
        return [line["reply"] for line in self.lines if "reply" in line]

    @property
    def steps(self) -> list[str]:
        """Each transition as `type subject`."""
        return [f"{event['type']} {_subject(event)}" for event in self.transitions]

    @property
    def reply(self) -> WireObject:
        """The only reply."""
        (reply,) = self.replies
        return reply

    @property
    def event(self) -> WireObject:
        """The only transition."""
        (event,) = self.transitions
        return event

    @property
    def granted(self) -> list[str]:
        """The ids of all jobs that were granted, in order."""
        return [job["job_id"] for reply in self.replies for job in reply.get("jobs", ())]

    def to(self, command_id: str) -> WireObject:
        """The only reply to that command."""
        (reply,) = [reply for reply in self.replies if reply["command_id"] == command_id]
        return reply


def _subject(event: WireObject) -> str:
    subject: str = event.get("job_id") or event.get("schedule_id") or event["queue"]
    return subject


class Script:
    """Partitions under virtual time, which starts at 2026-01-01T00:00:00Z."""

    def __init__(self, partitions: int = 1) -> None:
        self._replay = Replay(partitions)
        self._lines = 0

    def do(self, at: float | str, command: object) -> Printed:
        """Send a command at an instant: seconds after the start, or a time."""
        return self.do_all(at, [command])

    def do_all(self, at: float | str, commands: Iterable[object]) -> Printed:
        """Send commands at an instant, one after the other."""
        return self._play([{"at": at, "command": command} for command in commands])

    def wait(self, until: float | str) -> Printed:
        """Let time pass."""
        return self._play([{"at": until}])

    def away(self, at: float, until: float | str) -> Printed:
        """Let the engine be away."""
        return self._play([{"at": at, "down_until": until}])

    def record(self, job_id: str) -> WireObject:
        """The record of a job that is there."""
        return self.records()[job_id]

    def records(self) -> dict[str, WireObject]:
        """The records of all jobs by id."""
        records = [orjson.loads(line)["job"] for line in self._replay.records()]
        return {record["job_id"]: record for record in records}

    def _play(self, lines: list[WireObject]) -> Printed:
        # Blank lines are skipped, but counted: a command without an id gets the number of its line.
        text = chain(repeat(b"", self._lines), (json.dumps(line).encode() for line in lines))
        self._lines += len(lines)
        return Printed([orjson.loads(printed) for printed in self._replay.run(text)])


def time_of(seconds: int) -> str:
    """The instant so many seconds after the start, within the first day, as replay writes it."""
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    day, hour = divmod(hour, 24)
    return f"2026-01-{day + 1:02}T{hour:02}:{minute:02}:{second:02}Z"


def enqueue(job_id: str, **fields: object) -> WireObject:
    return {"type": "enqueue", "job_id": job_id, "wire_name": "work", **fields}


def claim(queue: str, worker_id: str, **fields: object) -> WireObject:
    return {"type": "claim", "queue": queue, "worker_id": worker_id, **fields}


def heartbeat(worker_id: str, *rows: WireObject, **fields: object) -> WireObject:
    return {"type": "heartbeat", "worker_id": worker_id, "leases": list(rows), **fields}


def report(worker_id: str, *rows: WireObject, **fields: object) -> WireObject:
    return {"type": "report", "worker_id": worker_id, "outcomes": list(rows), **fields}


def lease(job_id: str, attempt: int = 1, **fields: object) -> WireObject:
    return {"job_id": job_id, "attempt": attempt, **fields}


def success(job_id: str, attempt: int = 1, **fields: object) -> WireObject:
    return lease(job_id, attempt, outcome="Success", **fields)


def failure(job_id: str, attempt: int = 1, **fields: object) -> WireObject:
    return lease(job_id, attempt, outcome="Failure", **{"error": "broken", **fields})


def dead(job_id: str, attempt: int = 1) -> WireObject:
    """A failure that is not to be tried again."""
    return failure(job_id, attempt, next_due=None)


def returned(job_id: str, attempt: int = 1) -> WireObject:
    return lease(job_id, attempt, outcome="Returned")


def unroutable(job_id: str, attempt: int = 1) -> WireObject:
    return lease(job_id, attempt, outcome="Unroutable", reason="nobody")


def cancel(job_id: str, **fields: object) -> WireObject:
    return {"type": "cancel", "job_id": job_id, **fields}


def requeue(job_id: str, **fields: object) -> WireObject:
    return {"type": "requeue", "job_id": job_id, **fields}


def pause(queue: str, **fields: object) -> WireObject:
    return {"type": "pause_queue", "queue": queue, **fields}


def resume(queue: str, **fields: object) -> WireObject:
    return {"type": "resume_queue", "queue": queue, **fields}


def limit(queue: str, bound: int | None, **fields: object) -> WireObject:
    return {"type": "set_concurrency_limit", "queue": queue, "limit": bound, **fields}


def put_schedule(schedule_id: str, cron: str, **fields: object) -> WireObject:
    return {"type": "put_schedule", "schedule_id": schedule_id, "cron": cron, "wire_name": "work", **fields}


def remove_schedule(schedule_id: str, **fields: object) -> WireObject:
    return {"type": "remove_schedule", "schedule_id": schedule_id, **fields}


def trigger(schedule_id: str, **fields: object) -> WireObject:
    return {"type": "trigger_schedule", "schedule_id": schedule_id, **fields}
