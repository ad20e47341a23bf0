"""A job as an entry of the changelog: all that the engine knows of it, less what follows from other entries.

Version 2 leaves out the fields that hold their usual value, which halves the entry of a new job and the time
that it takes to write; version 1 wrote every one. One reader reads both.
"""

from __future__ import annotations

from typing import Final

import orjson

from tidelog.core.state import Job
from tidelog.core.versioned import UnreadableState, versioned
from tidelog_events.jsontext import NULL
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.sparse import Sparse
from tidelog_events.states import DependencyMode
from tidelog_events.wire import Unreadable

JOB_VERSION: Final = 2
_JOB_VERSIONS: Final = (1, JOB_VERSION)

# What stands here, and the defaults of `Job`, is what an entry of version 2 means by what it leaves out: a
# value that changes is a new version.
_FORM: Final = Sparse(
    Job,
    {
        "attempt": 0,
        "returned": 0,
        "mode": DependencyMode.ON_SUCCESS,
        "parents_remaining": 0,
        "lease_owner": None,
        "lease_expiry": None,
        "cancel_requested": False,
        "terminal_at": None,
        "terminal_cause": None,
        "output": NULL,
        "tags": (),
        "retry": DEFAULT_RETRY,
        "trace_context": None,
        "workflow_id": None,
        "schedule_id": None,
    },
    left_out=("waiting", "open_dependents", "lease_timer", "edges"),
)


def encode_job(job: Job) -> bytes:
    """A job as an entry."""
    written = _FORM.write(job)
    written["version"] = JOB_VERSION
    return orjson.dumps(written)


def decode_job(raw: bytes) -> Job:
    """The job of an entry. Raises `UnreadableState`."""
    try:
        return _FORM.read(versioned(raw, "a job", _JOB_VERSIONS))
    except Unreadable as error:
        raise UnreadableState(f"an entry of the state topic cannot be read: {error}") from None
