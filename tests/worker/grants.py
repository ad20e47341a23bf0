"""Grants as an engine makes them, with what a test has nothing to say about left as usual."""

from __future__ import annotations

from tidelog_events.identity import JobId, Sequence, queue_of
from tidelog_events.instants import Instant
from tidelog_events.replies import Grant
from tidelog_events.retry import DEFAULT_RETRY


def granted(
    job_id: JobId,
    lease: int,
    *,
    wire_name: str = "w",
    payload: bytes = b"null",
    attempt: int = 1,
    lease_expiry: Instant = Instant(0),
    cancel_requested: bool = False,
) -> Grant:
    """A job with a lease."""
    return Grant(
        job_id=job_id,
        queue=queue_of(job_id),
        wire_name=wire_name,
        payload=payload,
        attempt=attempt,
        lease=Sequence(lease),
        lease_expiry=lease_expiry,
        cancel_requested=cancel_requested,
        due_time=Instant(0),
        tags=(),
        retry=DEFAULT_RETRY,
        trace_context=None,
        workflow_id=None,
        schedule_id=None,
    )
