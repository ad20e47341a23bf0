"""The calls of the client that are about schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tidelog.client.checking import by, check_command, check_queue, check_schedule_id
from tidelog.client.errors import DEFAULT_TIMEOUT, ScheduleNotFound, unexpected_reply
from tidelog.client.reading import Jobs
from tidelog.client.schedule import Schedule
from tidelog_events.commands import Command, RemoveSchedule, TriggerSchedule
from tidelog_events.identity import JobId, Partition, QueueName, queue_of
from tidelog_events.replies import Reply, Result, TriggerReply
from tidelog_events.schedule_view import ScheduleView


class ScheduleCalls(ABC):
    """What a client can do about schedules. Its arguments and errors are those of the other calls."""

    _jobs: Jobs

    @abstractmethod
    def _partition(self, queue: QueueName) -> Partition:
        """Where a queue lives."""

    @abstractmethod
    async def _decision(
        self,
        command: Command,
        what: str,
        queue: QueueName,
        job_id: JobId | None,
        timeout: float,
        *,
        resend: bool = False,
    ) -> Reply:
        """Send a command and await its answer. Raises `ReplyTimeout` and what else sending may raise."""

    async def put_schedule(
        self,
        schedule: Schedule,
        *,
        actor: str | None = None,
        command_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Put a schedule there, or define one anew that is there under its id.

        A new schedule starts now. One that is defined so already is left as it is: its missed ticks are still
        made up. Another definition starts now too, after the missed ticks of the old one were settled.

        Args:
            schedule: when, and which job.
            actor: who asks.
            command_id: names this very call; minted when absent.
            timeout: seconds to wait for the decision.
        """
        command = schedule.command(actor=actor, command_id=command_id)
        what = f"put of the schedule {schedule.schedule_id}"
        reply = await self._decision(command, what, schedule.queue, None, timeout)
        if reply.result is not Result.OK:
            raise unexpected_reply(reply, what)

    async def remove_schedule(
        self,
        schedule_id: str,
        *,
        actor: str | None = None,
        command_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Let a schedule fire no more. The jobs that it has enqueued stay. The arguments are as above.

        Raises:
            ScheduleNotFound: there is no such schedule.
        """
        command = check_command(RemoveSchedule, {**by(actor, command_id), "schedule_id": schedule_id})
        what = f"removal of the schedule {command.schedule_id}"
        reply = await self._decision(command, what, queue_of(command.schedule_id), None, timeout)
        if reply.result is Result.SCHEDULE_NOT_FOUND:
            raise ScheduleNotFound(command.schedule_id)
        if reply.result is not Result.OK:
            raise unexpected_reply(reply, what)

    async def trigger_schedule(
        self,
        schedule_id: str,
        *,
        actor: str | None = None,
        command_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> JobId:
        """Enqueue a job of a schedule now, beside its ticks and whatever runs; the job's id.

        To call again with the same `command_id` gives the same job, until that is purged.

        Raises:
            ScheduleNotFound: there is no such schedule.
        """
        command = check_command(TriggerSchedule, {**by(actor, command_id), "schedule_id": schedule_id})
        what = f"trigger of the schedule {command.schedule_id}"
        reply = await self._decision(command, what, queue_of(command.schedule_id), None, timeout, resend=True)
        if reply.result is Result.SCHEDULE_NOT_FOUND:
            raise ScheduleNotFound(command.schedule_id)
        if isinstance(reply, TriggerReply) and reply.job_id is not None:
            return reply.job_id
        raise unexpected_reply(reply, what)

    async def schedule(self, schedule_id: str, *, timeout: float = DEFAULT_TIMEOUT) -> ScheduleView | None:
        """A schedule from Postgres; None when there is none. As with `get`, one's own commands are seen.

        Raises:
            ProjectionBehind: Postgres did not catch up with them within `timeout` seconds.
        """
        known = check_schedule_id(schedule_id)
        return await self._jobs.schedule(known, self._partition(queue_of(known)), timeout=timeout)

    async def schedules(
        self, queue: str | None = None, *, timeout: float = DEFAULT_TIMEOUT
    ) -> list[ScheduleView]:
        """All schedules, or those of a queue, by id. Raises as `schedule` does."""
        if queue is None:
            return await self._jobs.schedules(None, None, timeout=timeout)
        known = check_queue(queue)
        return await self._jobs.schedules(known, self._partition(known), timeout=timeout)
