"""A worker of somebody else: grants and reports as JSON, held to the same fence as our own."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.integration.outsider import Commander, Events, Inbox, Worker
from tests.integration.site import Site


@pytest.fixture
def queue() -> str:
    """A queue that no worker of ours serves."""
    return f"foreign-{uuid4().hex}"


@pytest.fixture
def worker(commander: Commander, inbox: Inbox) -> Worker:
    return Worker(commander, inbox)


@pytest.fixture
def other(site: Site, commander: Commander) -> Iterator[Worker]:
    """A second one, with a client id of its own."""
    with Inbox(site.brokers, site.prefix) as inbox:
        yield Worker(commander, inbox)


def enqueue(commander: Commander, queue: str, **fields: object) -> str:
    job_id = f"{queue}/{uuid4().hex}"
    commander.send({"type": "enqueue", "job_id": job_id, "wire_name": "press", **fields}, key=queue)
    return job_id


def test_it_works_from_end_to_end(commander: Commander, worker: Worker, events: Events, queue: str) -> None:
    job_id = enqueue(commander, queue, payload={"pages": 2})
    job = worker.claim(queue)
    assert (job["job_id"], job["payload"], job["attempt"]) == (job_id, {"pages": 2}, 1)
    renewed = {"job_id": job_id, "renewed": True, "cancel_requested": False}
    assert worker.heartbeat(job) == renewed
    assert worker.report(job, "Success", output={"printed": 2}) == "Applied"
    ended = events.until_type(job_id, "succeeded")
    assert ended.get("output") == {"printed": 2}
    assert [event["type"] for event in events.of(job_id)] == [
        "enqueued",
        "leased",
        "lease_renewed",
        "succeeded",
    ]
    assert events.of(job_id)[1]["sequence"] == job["lease"]


def test_a_stale_report_changes_nothing(
    commander: Commander, worker: Worker, other: Worker, events: Events, queue: str
) -> None:
    job_id = enqueue(commander, queue, retry={"max_attempts": 3, "delays": [0]})
    late = worker.claim(queue, lease_seconds=0.2)
    job = other.claim(queue)  # granted at the expiry of the first lease
    assert (job["job_id"], job["attempt"]) == (job_id, 2)
    assert worker.report(late, "Success", output="late") == "StaleLease"
    assert worker.heartbeat(late)["renewed"] is False
    # Another's lease is no lease, whatever its number.
    assert worker.report(job, "Failure", error="not mine") == "StaleLease"
    assert other.report(job, "Success", output="in time") == "Applied"
    assert other.report(job, "Success", output="twice") == "StaleLease"
    events.until_type(job_id, "succeeded")
    events.to_the_end()
    life = events.of(job_id)
    assert [event["type"] for event in life] == [
        "enqueued",
        "leased",
        "lease_expired",
        "leased",
        "succeeded",
    ]
    assert [event.get("worker_id") for event in life[1:]] == [
        worker.worker_id,
        worker.worker_id,
        other.worker_id,
        other.worker_id,
    ]
    assert life[-1].get("output") == "in time"


def test_a_lease_from_before_a_requeue_is_stale(
    commander: Commander, worker: Worker, events: Events, queue: str
) -> None:
    """Attempts start again after a requeue: only the lease tells the two grants of attempt 1 apart."""
    job_id = enqueue(commander, queue)
    before = worker.claim(queue)
    assert worker.report(before, "Failure", error="broken", next_due=None) == "Applied"
    commander.send({"type": "requeue", "job_id": job_id}, key=queue)
    after = worker.claim(queue)
    assert (before["attempt"], after["attempt"]) == (1, 1)
    assert worker.report(before, "Success", output="before") == "StaleLease"
    assert worker.report(after, "Success", output="after") == "Applied"
    assert events.until_type(job_id, "succeeded").get("output") == "after"


def test_it_is_told_of_a_cancel(commander: Commander, worker: Worker, events: Events, queue: str) -> None:
    job_id = enqueue(commander, queue)
    job = worker.claim(queue)
    commander.send({"type": "cancel", "job_id": job_id, "actor": "ann"}, key=queue)
    push = worker.inbox.first(lambda reply: reply["type"] == "cancel_requested")
    assert (push.get("job_id"), push["command_id"], push.get("lease")) == (job_id, None, job["lease"])
    assert worker.heartbeat(job)["cancel_requested"] is True
    assert worker.report(job, "Cancelled", cause="ann") == "Applied"
    events.until_type(job_id, "cancelled")


def test_it_may_report_to_a_wrong_partition(
    site: Site, inbox: Inbox, commander: Commander, events: Events, queue: str
) -> None:
    """With librdkafka's default partitioner its commands go astray, and are sent on."""
    job_id = enqueue(commander, queue)
    with Commander(site.brokers, site.prefix) as astray:
        worker = Worker(astray, inbox)
        assert worker.report(worker.claim(queue), "Success") == "Applied"
    events.until_type(job_id, "succeeded")
