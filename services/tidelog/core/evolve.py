"""What an event does to the state of its partition: the record by the shared fold, the indexes here."""

from __future__ import annotations

from tidelog.core.state import Job, ParentAnswer, PartitionState
from tidelog_events.identity import JobId, Sequence
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.states import JobState
from tidelog_events.transitions import (
    ConcurrencyLimitSet,
    Enqueued,
    JobFact,
    JobTransition,
    Leased,
    LeaseRenewed,
    ParentResolved,
    Purged,
    QueueFact,
    QueuePaused,
    QueueResumed,
    Requeued,
    ScheduleFact,
    SchedulePut,
    ScheduleRemoved,
    Transition,
)


class ImpossibleEvent(RuntimeError):
    """An event does not fit the state: the log, or the code that reads it, is broken."""


def evolve(state: PartitionState, event: Transition) -> None:
    """Change the state by one event. Raises `ImpossibleEvent`."""
    if event.sequence != state.sequence:
        raise ImpossibleEvent(
            f"partition {state.partition}: event {event.sequence} came where {state.sequence} was due"
        )
    state.sequence = Sequence(event.sequence + 1)
    match event:
        case Enqueued():
            _bear(state, event)
        case JobFact():
            _change(state, event)
        case Purged():
            _forget(state, event.job_id)
        case QueueFact():
            _set_queue(state, event)
        case ScheduleFact():
            _set_schedule(state, event)


def _bear(state: PartitionState, event: Enqueued) -> None:
    job = Job.born(event)
    state.jobs[job.job_id] = job
    state.dirty_jobs[job.job_id] = None
    if job.schedule_id is not None:
        state.timetable.note_birth(job, job.schedule_id, job.enqueue_command_id)
    admission = state.admissions.get(job.job_id)
    if admission is not None:
        job.admission = admission.number
    for parent_id in event.parents:  # in the order of the enqueue, wherever they live: a rebuild shows it
        parent = state.jobs.get(parent_id)
        if parent is not None:
            _name_parent(job, parent)
        elif admission is not None:
            _name_parent_elsewhere(state, job, parent_id, admission.answers[parent_id])
    state.index(job)
    if job.parents and not job.state.is_terminal:  # one that is born ended never holds its parents
        state.hold_parents(job)


def _name_parent(job: Job, parent: Job) -> None:
    job.parents[parent.job_id] = parent.enqueue_sequence
    if job.state is JobState.AWAITING_PARENT and not parent.state.is_terminal:
        job.open_parents[parent.job_id] = None


def _name_parent_elsewhere(
    state: PartitionState, job: Job, parent_id: JobId, answer: ParentAnswer | None
) -> None:
    if state.is_home_of(parent_id) or answer is None or answer.sequence is None:
        return
    job.parents[parent_id] = answer.sequence
    if job.state is JobState.AWAITING_PARENT and answer.is_open:
        job.open_parents[parent_id] = None


def _change(state: PartitionState, event: JobFact) -> None:
    job = state.jobs[event.job_id]
    before = job.state
    job.apply(event)
    state.dirty_jobs[job.job_id] = None
    if isinstance(event, JobTransition):
        job.ordinal = event.ordinal
        _leave(state, job, before)
        if job.schedule_id is not None:
            ends = before.is_terminal, job.state.is_terminal
            state.timetable.note_step(job.schedule_id, was_ended=ends[0], is_ended=ends[1])
        if isinstance(event, Leased):
            job.lease = event.sequence
        elif isinstance(event, Requeued):
            state.hold_parents(job)
        state.index(job)
        if job.state.is_terminal:
            for parent in state.living_parents(job):
                parent.open_dependents -= 1
                state.let_go(parent)
    elif isinstance(event, LeaseRenewed):
        state.put_lease_timer(job)
    elif isinstance(event, ParentResolved):
        job.open_parents.pop(event.parent_id, None)


def _leave(state: PartitionState, job: Job, before: JobState) -> None:
    match before:
        case JobState.LEASED:
            state.queue(job.queue).leased -= 1
            job.lease = None
            job.lease_reply_to = None
            job.lease_timer = None
        case JobState.AWAITING_PARENT:
            for parent_id in job.open_parents:
                parent = state.jobs.get(parent_id)
                if parent is not None:
                    parent.waiting.pop(job.job_id, None)
            job.open_parents.clear()
        case JobState.SCHEDULED if job.state is not JobState.LEASED:
            state.forget_ready(state.queue(job.queue))


def _forget(state: PartitionState, job_id: JobId) -> None:
    job = state.jobs.pop(job_id)
    state.dirty_jobs[job_id] = None
    if job.schedule_id is not None:
        state.timetable.note_purge(job, job.schedule_id, job.enqueue_command_id)


def _set_schedule(state: PartitionState, event: ScheduleFact) -> None:
    timetable = state.timetable
    timetable.dirty[event.schedule_id] = None
    if isinstance(event, ScheduleRemoved):
        del timetable.schedules[event.schedule_id]
        return
    schedule = timetable.schedules.get(event.schedule_id)
    before = None if schedule is None else schedule.next_due
    if isinstance(event, SchedulePut) and schedule is None:
        schedule = timetable.schedules[event.schedule_id] = ScheduleRecord.put(event)
    elif schedule is None:
        raise ImpossibleEvent(f"a {event.TYPE} event of {event.schedule_id}, which is no schedule")
    else:
        schedule.apply(event)
    if schedule.next_due != before:
        timetable.index(schedule)


def _set_queue(state: PartitionState, event: QueueFact) -> None:
    queue = state.queue(event.queue)
    state.dirty_queues[event.queue] = None
    match event:
        case QueuePaused():
            queue.paused, queue.paused_at, queue.paused_by = True, event.at, event.actor
        case QueueResumed():
            queue.paused, queue.paused_at, queue.paused_by = False, None, None
        case ConcurrencyLimitSet():
            queue.limit = event.limit
