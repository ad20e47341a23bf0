"""A job as an entry of the changelog: what is as usual is left out, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from tidelog.core.entry import decode_job, encode_job
from tidelog.core.state import Job
from tidelog_events.identity import ClientId, CommandId, JobId, Partition, QueueName, Sequence, WorkerId
from tidelog_events.instants import SECOND, Instant, Micros
from tidelog_events.jsontext import NULL
from tidelog_events.retry import DEFAULT_RETRY, RetryPolicy
from tidelog_events.states import DependencyMode, JobState
from tidelog_events.transitions import Enqueued

NEW = Job(
    job_id=JobId("q/a"),
    queue=QueueName("q"),
    wire_name="w",
    state=JobState.SCHEDULED,
    attempt=0,
    returned=0,
    enqueue_sequence=Sequence(3),
    due_time=Instant(7 * SECOND),
    mode=DependencyMode.ON_SUCCESS,
    parents_remaining=0,
    lease_owner=None,
    lease_expiry=None,
    cancel_requested=False,
    terminal_at=None,
    terminal_cause=None,
    payload=b'{"n":1}',
    output=NULL,
    tags=(),
    retry=DEFAULT_RETRY,
    trace_context=None,
    workflow_id=None,
    schedule_id=None,
    enqueued_at=Instant(7 * SECOND),
    updated_at=Instant(7 * SECOND),
    partition=Partition(0),
    sequence=Sequence(3),
)


def but_for(name: str, value: object) -> Job:
    """The new job, but for one field."""
    job = replace(NEW)
    setattr(job, name, value)
    return job


def test_a_job_that_is_born_has_every_field() -> None:
    birth = Enqueued(
        at=NEW.enqueued_at,
        partition=NEW.partition,
        sequence=NEW.sequence,
        cause_command_id=CommandId("c"),
        job_id=NEW.job_id,
        queue=NEW.queue,
        wire_name=NEW.wire_name,
        ordinal=0,
        state=NEW.state,
        attempt=0,
        payload=NEW.payload,
        due_time=NEW.due_time,
        parents=(),
        mode=NEW.mode,
        parents_remaining=0,
        tags=(),
        retry=NEW.retry,
        trace_context=None,
        workflow_id=None,
        schedule_id=None,
        terminal_at=None,
        terminal_cause=None,
    )

    assert Job.born(birth) == replace(NEW, enqueue_command_id=CommandId("c"))


def test_the_entry_of_a_new_job_says_only_what_is_particular_to_it() -> None:
    assert encode_job(NEW) == (
        b'{"job_id":"q/a","queue":"q","wire_name":"w","state":"Scheduled","enqueue_sequence":3,'
        b'"due_time":"1970-01-01T00:00:07Z","payload":{"n":1},"enqueued_at":"1970-01-01T00:00:07Z",'
        b'"updated_at":"1970-01-01T00:00:07Z","partition":0,"sequence":3,"version":2}'
    )
    assert decode_job(encode_job(NEW)) == NEW


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("attempt", 2, 2),
        ("returned", 1, 1),
        ("mode", DependencyMode.ON_ANY_TERMINAL, "OnAnyTerminal"),
        ("parents_remaining", 3, 3),
        ("lease_owner", WorkerId(""), ""),
        ("lease_expiry", Instant(0), "1970-01-01T00:00:00Z"),
        ("cancel_requested", True, True),
        ("terminal_at", Instant(SECOND), "1970-01-01T00:00:01Z"),
        ("terminal_cause", "", ""),
        ("output", b"[0]", [0]),
        ("output", b'""', ""),
        ("tags", ("a", ("k", "v")), ["a", {"k": "v"}]),
        ("retry", RetryPolicy(10, (Micros(SECOND),)), {"max_attempts": 10, "delays": [1]}),
        ("trace_context", "", ""),
        ("workflow_id", "", ""),
        ("schedule_id", "q/s", "q/s"),
        ("ordinal", 4, 4),
        ("enqueue_command_id", CommandId(""), ""),
        ("lease", Sequence(0), 0),
        ("lease_reply_to", ClientId("r"), "r"),
        ("parents", {JobId("q/p"): Sequence(0)}, {"q/p": 0}),
        ("open_parents", {JobId("q/p"): None}, {"q/p": None}),
        ("admission", 0, 0),
    ],
)
def test_what_is_not_as_usual_is_written_and_read_back(name: str, value: object, written: object) -> None:
    job = but_for(name, value)
    entry = orjson.loads(encode_job(job))
    assert entry.pop(name) == written
    assert entry == orjson.loads(encode_job(NEW)), "and nothing else is"
    assert decode_job(encode_job(job)) == job


def test_the_usual_policy_is_left_out_whoever_made_it() -> None:
    assert encode_job(replace(NEW, retry=RetryPolicy())) == encode_job(NEW)


@pytest.mark.parametrize("name", ["waiting", "open_dependents", "lease_timer", "edges"])
def test_what_follows_from_other_entries_is_never_written(name: str) -> None:
    assert encode_job(but_for(name, 1)) == encode_job(NEW)


def test_an_entry_of_version_1_which_says_everything_is_read_as_ever() -> None:
    entry = {
        "version": 1, "job_id": "q/a", "queue": "q", "wire_name": "w", "state": "Leased", "attempt": 2,
        "returned": 1, "enqueue_sequence": 3, "due_time": "1970-01-01T00:00:07Z", "mode": "OnAnyTerminal",
        "parents_remaining": 0, "lease_owner": "me", "lease_expiry": "1970-01-01T00:01:07Z",
        "cancel_requested": True, "terminal_at": None, "terminal_cause": None, "payload": {"n": 1},
        "output": None, "tags": ["a", {"k": "v"}], "retry": {"max_attempts": 3, "delays": [1, 2.5]},
        "trace_context": "t", "workflow_id": "f", "schedule_id": None,
        "enqueued_at": "1970-01-01T00:00:07Z", "updated_at": "1970-01-01T00:00:08Z", "partition": 0,
        "sequence": 9, "ordinal": 4, "enqueue_command_id": "c", "lease": 9, "lease_reply_to": "r",
        "parents": {"q/p": 1}, "open_parents": {}, "admission": None,
    }  # fmt: skip
    job = decode_job(orjson.dumps(entry))
    assert (job.attempt, job.returned, job.lease, job.lease_owner, job.ordinal) == (2, 1, 9, "me", 4)
    assert (job.mode, job.cancel_requested, job.output) == (DependencyMode.ON_ANY_TERMINAL, True, NULL)
    assert (job.tags, job.retry) == (("a", ("k", "v")), RetryPolicy(3, (Micros(SECOND), Micros(2_500_000))))
    assert (job.parents, job.enqueue_command_id, job.lease_reply_to) == ({"q/p": 1}, "c", "r")
    assert decode_job(encode_job(job)) == job, "and written anew in the form of today"
