"""A schedule that is about to be put: its command, checked with the very code that engines check with."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.client.checking import by, check_command
from tidelog.client.errors import InvalidCommand, shown
from tidelog.client.minting import now
from tidelog.client.newjob import TagLike, describe, written_tags
from tidelog.handler.jobs import JobRequest, Retry, policy_of
from tidelog_events.commands import PutSchedule
from tidelog_events.cron import read_cron
from tidelog_events.identity import QueueName, ScheduleId, queue_of
from tidelog_events.jsontext import Json, loads
from tidelog_events.states import CatchUp
from tidelog_events.wire import write_retry


class Schedule:
    """When jobs are to be enqueued by themselves, and which (contract section 3, Schedules).

    Args:
        schedule_id: `<queue>/<name>`. Its jobs run on that queue.
        cron: five fields, or six with leading seconds; see `every`, `daily`, `weekly` and `monthly`.
        job: what `handler.job(...)` returned, or a wire name when the handler lives elsewhere.
        payload: any JSON value, for a wire name only; a job description has its own.
        time_zone: an IANA zone, such as `Europe/Berlin`, in which the expression is meant.
        catch_up: what becomes of ticks that no engine was there for: `Skip` records them, `Coalesce` enqueues
            one job for the latest of them.
        no_overlap: skip a tick while a job of the schedule has not ended.
        tags: labels and key-value pairs of its jobs, at most 32.
        retry: instead of the description's policy.

    Raises:
        InvalidCommand: a field is malformed, or the job belongs to another queue; the field is named.
        ValueError: a payload beside a description.
    """

    __slots__ = ("_checked", "_given")

    def __init__(
        self,
        schedule_id: str,
        cron: str,
        job: JobRequest | str,
        payload: object = None,
        *,
        time_zone: str = "UTC",
        catch_up: CatchUp | str = CatchUp.SKIP,
        no_overlap: bool = False,
        tags: Sequence[TagLike] = (),
        retry: Retry | None = None,
    ) -> None:
        described = describe(job, payload)
        self._given: dict[str, Json] = {
            "schedule_id": schedule_id,
            "cron": cron,
            "time_zone": time_zone,
            "wire_name": described.wire_name,
            "payload": loads(described.payload),
            "tags": written_tags(tags),
            "retry": write_retry(policy_of(retry, described.retry)),
            "catch_up": catch_up,
            "no_overlap": no_overlap,
        }
        self._checked = self.command()
        if read_cron(cron, time_zone).next_after(now()) is None:
            raise InvalidCommand("cron", f"cron {shown(cron)} never fires in {time_zone} in a hundred years")
        if not isinstance(job, str) and job.queue != self.queue:
            raise InvalidCommand("schedule_id", _other_queue(self.schedule_id, job))

    @property
    def schedule_id(self) -> ScheduleId:
        """`<queue>/<name>`."""
        return self._checked.schedule_id

    @property
    def queue(self) -> QueueName:
        """Where its jobs run."""
        return queue_of(self.schedule_id)

    @property
    def cron(self) -> str:
        """When it fires, as it was said."""
        return self._checked.cron

    @property
    def time_zone(self) -> str:
        """The zone in which it fires."""
        return self._checked.time_zone

    @property
    def wire_name(self) -> str:
        """Which handler its jobs are for."""
        return self._checked.wire_name

    def command(self, *, actor: str | None = None, command_id: str | None = None) -> PutSchedule:
        """The command that puts it, by somebody and under a name. Raises `InvalidCommand`."""
        return check_command(PutSchedule, {**by(actor, command_id), **self._given})

    def __repr__(self) -> str:
        return f"Schedule({self.schedule_id!r}, {self.cron!r}, {self.wire_name!r})"


def _other_queue(schedule_id: ScheduleId, job: JobRequest) -> str:
    name = schedule_id.partition("/")[2]
    return (
        f"schedule_id {shown(schedule_id)} is of the queue {queue_of(schedule_id)!r}, but the job "
        f"{job.wire_name!r} is of the queue {job.queue!r}: the jobs of a schedule run on the schedule's own "
        f"queue. Name the schedule {job.queue}/{name}, or declare the job with "
        f"queue={queue_of(schedule_id)!r}"
    )
