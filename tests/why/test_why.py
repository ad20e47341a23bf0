"""Why a job is not running: each reason with what it is about, several at once, the most decisive first."""

from __future__ import annotations

import orjson
import pytest
from tests.doctor.patient import QUEUES, Patient
from tests.why.place import Place, place_of

from tidelog.client.client import Client
from tidelog.client.errors import InvalidCommand, NoProjection
from tidelog_events.identity import JobId, partition_of
from tidelog_events.instants import format_instant
from tidelog_events.states import JobState
from tidelog_projections.projection import Projection

HOUR = 3_600


async def test_time_pauses_and_a_queue_that_nobody_serves_may_all_hold_at_once(place: Place) -> None:
    job_id = await place.client.enqueue("work", queue="mail", key="later", delay=HOUR)
    await place.client.pause_queue("mail", actor="ann")
    answer = await place.why(job_id)
    assert [reason.code for reason in answer.reasons] == ["queue_paused", "not_due", "no_worker"]
    assert answer.state is JobState.SCHEDULED
    paused, not_due, no_worker = answer.reasons
    assert paused.details["paused_by"] == "ann"
    assert paused.sentence.startswith("The queue mail was paused by ann at 2")
    record = await place.projection.job(job_id)
    assert record is not None
    assert not_due.details == {"due_time": format_instant(record.due_time), "attempt": 0}
    assert "It is not due until 2" in not_due.sentence
    assert "in 59 min 5" in not_due.sentence
    assert no_worker.details == {"queue": "mail", "within_seconds": 60, "other_workers": []}

    await place.client.resume_queue("mail")
    assert await place.codes(job_id, later=2 * HOUR) == ["no_worker"]
    await place.claim("mail", wait_seconds=5)
    assert await place.codes(job_id) == ["not_due"]
    assert orjson.loads(orjson.dumps((await place.why(job_id)).to_json()))["reasons"][0]["code"] == "not_due"


async def test_a_retry_tells_why_it_is_one(place: Place) -> None:
    job_id = await place.client.enqueue("work", queue="mail")
    job = await place.run(job_id)
    await place.report(job, "Failure", error="smtp: 421")
    await place.until(job_id, JobState.SCHEDULED)
    reason = (await place.why(job_id)).reasons[0]
    assert (reason.code, reason.details["last_error"]) == ("not_due", "smtp: 421")
    assert reason.sentence.startswith("Attempt 1 failed (smtp: 421); the next one is not due until")


async def test_a_limit_names_the_jobs_that_hold_it(place: Place) -> None:
    await place.client.set_concurrency_limit("narrow", 1)
    first = await place.client.enqueue("work", queue="narrow", key="first")
    await place.run(first, "worker-a")
    second = await place.client.enqueue("work", queue="narrow", key="second")
    await place.claim("narrow", "worker-b", wait_seconds=5)
    [reason] = (await place.why(second)).reasons
    assert reason.code == "limit_reached"
    assert (reason.details["limit"], reason.details["leased"]) == (1, 1)
    assert "narrow/first (worker-a)" in reason.sentence
    assert isinstance(reason.details["jobs"], list)
    assert len(reason.details["jobs"]) == 1


async def test_whoever_serves_the_queue_may_be_busy_or_may_take_it_soon(place: Place) -> None:
    jobs = [await place.client.enqueue("work", queue="busy", key=f"n{number}") for number in range(4)]
    job = await place.run(jobs[0])
    # Of the claims before only the one that was granted is left; a minute later only its heartbeats tell.
    await place.tell(
        "busy",
        {"type": "heartbeat", "worker_id": "worker-1", "leases": [{"job_id": job.job_id, "attempt": 1}]},
    )
    busy = (await place.why(jobs[3], later=30)).reasons[0]
    assert (busy.code, busy.details["workers"]) == ("workers_busy", ["worker-1"])
    assert await place.codes(jobs[3], later=90) == ["no_worker"]

    [soon] = (await place.why(jobs[3])).reasons
    assert (soon.code, soon.details["ahead"]) == ("soon", 2)
    assert "2 due jobs are before it in the queue busy" in soon.sentence


async def test_parents_are_named_with_their_state_wherever_they_live(place: Place) -> None:
    ended, running, waiting = [
        await place.client.enqueue("work", queue=queue, key="parent", delay=delay)
        for queue, delay in zip(QUEUES, (None, None, HOUR), strict=True)
    ]
    child = await place.client.enqueue("work", queue="family", parents=[ended, running, waiting])
    await place.report(await place.run(ended), "Success")
    await place.until(ended, JobState.SUCCEEDED)
    await place.run(running)
    while (reason := (await place.why(child)).reasons[0]).details["parents_remaining"] != 2:
        pass
    assert reason.code == "awaiting_parents"
    assert reason.details["parents"] == [
        {"job_id": running, "state": "Leased"},
        {"job_id": waiting, "state": "Scheduled"},
    ]
    assert f"waits for 2 of its 3 parents: {running} (Leased), {waiting} (Scheduled)" in reason.sentence


async def test_a_running_job_a_silent_worker_and_a_lease_that_ran_out(place: Place) -> None:
    job_id = await place.client.enqueue("work", queue="mail")
    job = await place.run(job_id, "worker-7", lease_seconds=600)
    running = (await place.why(job_id)).reasons[0]
    assert (running.code, running.details["worker_id"]) == ("running", "worker-7")
    assert job.lease_expiry is not None
    assert running.details["lease_expiry"] == format_instant(job.lease_expiry)
    silent = (await place.why(job_id, later=400)).reasons[0]
    assert silent.code == "worker_silent"
    assert "worker-7 has it (attempt 1) and was last heard of 6 min 4" in silent.sentence
    assert await place.codes(job_id, later=601) == ["lease_overdue"]

    await place.client.cancel(job_id, actor="ann")
    while len((answer := await place.why(job_id)).reasons) < 2:
        pass
    assert [reason.code for reason in answer.reasons] == ["running", "cancel_requested"]
    assert answer.reasons[1].details["actor"] == "ann"


async def test_an_end_an_unknown_id_and_a_purge_that_the_archive_tells_of(
    patient: Patient, postgres_dsn: str
) -> None:
    async with place_of(patient) as place:
        job_id = await place.client.enqueue("work", queue="mail")
        await place.report(await place.run(job_id), "Failure", error="boom", next_due=None)
        await place.until(job_id, JobState.DEAD_LETTERED)
        [ended] = (await place.why(job_id)).reasons
        assert (ended.code, ended.details["terminal_cause"]) == ("ended", "boom")
        assert f"`tidelog requeue {job_id}`" in ended.sentence
        unknown = await place.why("mail/never-there")
        assert (unknown.code, unknown.state) == ("unknown_job", None)

        # As after a purge with TIDELOG_ARCHIVE=on.
        async with await Projection.connect(postgres_dsn) as projection, projection.postgres.session() as sql:
            await sql.execute(
                "INSERT INTO tidelog.jobs_archive SELECT j.*, '[]', '{}', now() FROM tidelog.jobs j"
            )
            await sql.execute("DELETE FROM tidelog.jobs")
        purged = await place.why(job_id)
        assert (purged.code, purged.state) == ("purged", None)
        assert "It ended as DeadLettered at 2" in purged.sentence


async def test_without_an_engine_and_behind_the_log(patient: Patient) -> None:
    """The enqueue is decided while both run; then nobody is there any more."""
    async with place_of(patient) as place:
        job_id = await place.client.enqueue("work", queue="mail", delay=HOUR)
        await place.until(job_id, JobState.SCHEDULED)
    async with place_of(patient, engine=False) as place:
        answer = await place.why(job_id)
        assert [reason.code for reason in answer.reasons] == ["no_engine", "not_due", "no_worker"]
        partition = partition_of("mail", patient.partitions)
        assert answer.reasons[0].details == {"partition": partition}
        assert "`tidelog engine`" in answer.sentence
        undecided = await place.client.send("work", queue="mail", key="undecided")
        assert await place.codes(undecided) == ["no_engine", "unknown_job"]
    async with place_of(patient, projector=False) as place:
        await place.client.cancel(job_id)
        answer = await place.why(job_id)
        assert [reason.code for reason in answer.reasons][-1] == "projection_behind"
        assert answer.reasons[-1].details["events"] == 2  # the enqueue that waited, and the cancel
        unknown = await place.client.enqueue("work", queue="mail", key="not-yet-there")
        assert await place.codes(unknown) == ["projection_behind", "unknown_job"]


async def test_a_client_asks_too(patient: Patient) -> None:
    async with (
        place_of(patient) as place,
        Client.open(place.log, patient.topics, projection=lambda: Projection.connect(patient.dsn)) as client,
    ):
        job_id = await client.enqueue("work", queue="mail", delay=HOUR)
        answer = await client.why(job_id)
        assert (answer.code, answer.job_id) == ("not_due", job_id)
        with pytest.raises(InvalidCommand):
            await client.why("no id")
        with pytest.raises(NoProjection):
            await place.client.why(job_id)


async def test_on_kafka_workers_and_engines_are_seen_too(place_on_kafka: Place) -> None:
    place = place_on_kafka
    job_id = await place.client.enqueue("work", queue="mail")
    await place.until(JobId(job_id), JobState.SCHEDULED)
    assert await place.codes(job_id) == ["no_worker"]
    await place.claim("post", "worker-9", wait_seconds=5)
    await place.client.pause_queue("mail", actor="ann")
    await place.claim("mail", wait_seconds=5)
    assert await place.codes(job_id) == ["queue_paused"]
    assert await place.codes(job_id, later=90) == ["queue_paused", "no_worker"]
