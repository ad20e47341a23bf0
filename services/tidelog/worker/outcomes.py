"""The rows of a report, made from a grant and what its attempt came to.

They are constructed without validation: outputs are encoded JSON already, and every text has been made safe.
Each names its `outcome`, since what is not set is not written.
"""

from __future__ import annotations

from typing import assert_never

from tidelog.handler.failure import FailureText
from tidelog.handler.verdicts import BY_POLICY, NextDue
from tidelog_events.bounds import MAX_OUTPUT_BYTES, cut_text
from tidelog_events.commands import CancelledOutcome, Failure, Outcome, ReturnedOutcome, Success, Unroutable
from tidelog_events.jsontext import JsonBytes
from tidelog_events.replies import Grant
from tidelog_events.wire import Tag


def succeeded(grant: Grant, output: JsonBytes, tags: tuple[Tag, ...] = ()) -> Success | Failure:
    """The handler returned. An output over the bound is a failure (contract section 3, Bounds)."""
    if len(output) > MAX_OUTPUT_BYTES:
        error = (
            f"OutputTooLarge: the handler returned {len(output)} bytes of JSON; at most {MAX_OUTPUT_BYTES} "
            "are kept. Store the result elsewhere and return where it is."
        )
        return failed(grant, FailureText(error, error), tags)
    return Success.model_construct(
        job_id=grant.job_id,
        attempt=grant.attempt,
        lease=grant.lease,
        outcome="Success",
        output=output,
        add_tags=tags,
    )


def failed(
    grant: Grant, failure: FailureText, tags: tuple[Tag, ...] = (), *, due: NextDue = BY_POLICY
) -> Failure:
    """The attempt failed; the job is due again at `due`, or never again when that is None."""
    row = Failure.model_construct(
        job_id=grant.job_id,
        attempt=grant.attempt,
        lease=grant.lease,
        outcome="Failure",
        error=failure.error,
        failure_detail=failure.detail,
        add_tags=tags,
    )
    if due is not BY_POLICY:
        row.next_due = due
    return row


def timed_out(grant: Grant, seconds: float, tags: tuple[Tag, ...] = ()) -> Failure:
    """The attempt took longer than the job's declaration allows."""
    error = f"TimedOut: the attempt took longer than {seconds:g} s."
    return failed(grant, FailureText(error, error), tags)


def cancelled(grant: Grant) -> CancelledOutcome:
    """The job was cancelled, before its handler ran or by stopping it."""
    return CancelledOutcome.model_construct(
        job_id=grant.job_id, attempt=grant.attempt, lease=grant.lease, outcome="Cancelled"
    )


def unroutable(grant: Grant, reason: str) -> Unroutable:
    """No handler here can run the job; the engine quarantines it."""
    return Unroutable.model_construct(
        job_id=grant.job_id,
        attempt=grant.attempt,
        lease=grant.lease,
        outcome="Unroutable",
        reason=cut_text(reason),
    )


def returned(grant: Grant) -> ReturnedOutcome:
    """The worker gives the job back; the attempt is not charged."""
    return ReturnedOutcome.model_construct(
        job_id=grant.job_id, attempt=grant.attempt, lease=grant.lease, outcome="Returned"
    )


_FRAME_BYTES = 1_024
_BYTES_PER_CHAR = 6
"""A control character takes six bytes as JSON, and no character takes more."""


def written_size(row: Outcome) -> int:
    """At most so many bytes as JSON."""
    match row:
        case Success():
            return _FRAME_BYTES + len(row.output) + _BYTES_PER_CHAR * _tag_chars(row.add_tags)
        case Failure():
            chars = len(row.error) + len(row.failure_detail or "") + _tag_chars(row.add_tags)
            return _FRAME_BYTES + _BYTES_PER_CHAR * chars
        case Unroutable():
            return _FRAME_BYTES + _BYTES_PER_CHAR * len(row.reason)
        case CancelledOutcome() | ReturnedOutcome():
            return _FRAME_BYTES
        case _:
            assert_never(row)


def _tag_chars(tags: tuple[Tag, ...]) -> int:
    return sum(len(tag) if isinstance(tag, str) else len(tag[0]) + len(tag[1]) + 1 for tag in tags)
