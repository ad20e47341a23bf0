"""Claims: granting work in claim order, parking, serving what is parked (contract section 3, Claim order)."""

from __future__ import annotations

from heapq import heappop

from tidelog.core.decision import Decision
from tidelog.core.pieces import in_pieces
from tidelog.core.state import Job, ParkedClaim, Queue
from tidelog_events.bounds import MAX_CLAIMED_JOBS
from tidelog_events.commands import Claim
from tidelog_events.instants import Instant, later
from tidelog_events.replies import ClaimReply, Grant, Result
from tidelog_events.states import JobState
from tidelog_events.transitions import Leased

# Of a grant: field names, times and numbers.
_GRANT_FRAME_BYTES = 512
_DELAY_BYTES = 24
# A control character takes six bytes as JSON, and no character takes more.
_BYTES_PER_CHAR = 6


def claim(decision: Decision, command: Claim) -> None:
    """Grant what is due; else park the claim when it may wait, or answer that there is nothing."""
    queue = decision.state.queue(command.queue)
    replaced = queue.parked.get(command.worker_id)
    if replaced is not None:
        _unpark(decision, queue, replaced)
        _answer(decision, queue, replaced.claim, [])
    grants = _grant(decision, queue, command)
    if grants or not command.wait_seconds:
        _answer(decision, queue, command, grants)
    else:
        _park(decision, queue, command)


def serve_parked(decision: Decision) -> None:
    """Serve the parked claims of touched queues, over all of them in the order of parking."""
    state = decision.state
    waiting = [queue for queue in decision.touched.values() if queue.parked]
    while waiting:
        waiting = [queue for queue in waiting if queue.parked and state.has_due_work(queue, decision.now)]
        if not waiting:
            return
        queue = min(waiting, key=lambda queue: _first(queue).number)
        parked = _first(queue)
        _unpark(decision, queue, parked)
        _answer(decision, queue, parked.claim, _grant(decision, queue, parked.claim))


def touch_due_queues(decision: Decision) -> None:
    """Mark the queues in which a job has fallen due while claims are parked there."""
    for queue in decision.state.waiting_queues.values():
        if decision.state.has_due_work(queue, decision.now):
            decision.touch(queue.name)


def end_waits(decision: Decision) -> None:
    """Answer the parked claims whose wait is over with nothing, in the order of parking."""
    over = [
        (parked.number, queue, parked)
        for queue in decision.state.waiting_queues.values()
        for parked in queue.parked.values()
        if parked.until <= decision.now
    ]
    for _, queue, parked in sorted(over, key=lambda entry: entry[0]):
        _unpark(decision, queue, parked)
        _answer(decision, queue, parked.claim, [])


def _first(queue: Queue) -> ParkedClaim:
    return next(iter(queue.parked.values()))


def _park(decision: Decision, queue: Queue, command: Claim) -> None:
    state = decision.state
    until = later(decision.now, command.wait_seconds)
    queue.parked[command.worker_id] = ParkedClaim(state.next_parking, command, until)
    state.next_parking += 1
    state.waiting_queues[queue.name] = queue


def _unpark(decision: Decision, queue: Queue, parked: ParkedClaim) -> None:
    del queue.parked[parked.claim.worker_id]
    if not queue.parked:
        decision.state.waiting_queues.pop(queue.name, None)


def _grant(decision: Decision, queue: Queue, command: Claim) -> list[Grant]:
    """Lease due jobs in claim order, as many as the claim asks for and the queue has room for."""
    state = decision.state
    expiry = later(decision.now, command.lease_seconds)
    grants: list[Grant] = []
    for _ in range(min(command.max_jobs, MAX_CLAIMED_JOBS, queue.room)):
        first = state.first_scheduled(queue)
        if first is None or first[0] > decision.now:
            break
        heappop(queue.ready)
        job = state.jobs[first[2]]
        fields = decision.step_fields(job)
        # A parked claim is served in the decision of another command, but it is the claim that leases.
        fields["cause_command_id"] = command.command_id
        decision.emit(
            Leased(
                **fields,
                actor=command.actor,
                state=JobState.LEASED,
                attempt=job.attempt + 1,
                worker_id=command.worker_id,
                lease_expiry=expiry,
            )
        )
        job.lease_reply_to = command.reply_to
        grants.append(_granted(job, expiry))
    return grants


def _granted(job: Job, expiry: Instant) -> Grant:
    if job.lease is None:
        raise ValueError(f"{job.job_id} is granted without a lease")
    return Grant(
        job_id=job.job_id,
        queue=job.queue,
        wire_name=job.wire_name,
        payload=job.payload,
        attempt=job.attempt,
        lease=job.lease,
        lease_expiry=expiry,
        cancel_requested=job.cancel_requested,
        due_time=job.due_time,
        tags=job.tags,
        retry=job.retry,
        trace_context=job.trace_context,
        workflow_id=job.workflow_id,
        schedule_id=job.schedule_id,
    )


def _next_due(decision: Decision, queue: Queue) -> Instant | None:
    if queue.paused:
        return None
    first = decision.state.first_scheduled(queue)
    return None if first is None else max(first[0], decision.now)


def _answer(decision: Decision, queue: Queue, command: Claim, grants: list[Grant]) -> None:
    next_due = _next_due(decision, queue)
    pieces = in_pieces(grants, _size)
    for number, piece in enumerate(pieces, 1):
        decision.answer(
            command.reply_to,
            ClaimReply(
                command_id=command.command_id,
                type=command.type,
                result=Result.OK,
                partition=decision.state.partition,
                sequence=decision.state.last_sequence,
                jobs=tuple(piece),
                next_due=next_due,
                more=True if number < len(pieces) else None,
            ),
        )


def _size(grant: Grant) -> int:
    """At most so many bytes as JSON."""
    names = len(grant.job_id) + len(grant.queue) + len(grant.schedule_id or "")
    chars = len(grant.wire_name) + len(grant.trace_context or "") + len(grant.workflow_id or "")
    for tag in grant.tags:
        # the quotes, colon, comma and braces around a tag are five characters at most
        chars += 5 + (len(tag) if isinstance(tag, str) else len(tag[0]) + len(tag[1]))
    delays = _DELAY_BYTES * len(grant.retry.delays or ())
    return _GRANT_FRAME_BYTES + len(grant.payload) + names + delays + _BYTES_PER_CHAR * chars
