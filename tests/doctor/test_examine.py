"""What the doctor finds in real installations, well and ill, on both logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import uuid4

from tests.doctor.patient import PARTITIONS, Patient, ailments, of
from tests.engine.house import eventually
from tests.projection.story import Story, records_of
from tests.providers.postgres import in_database

from tidelog.clock import wall_clock
from tidelog.doctor.examine import NAMES, Installation, examine
from tidelog.doctor.findings import Finding, Health
from tidelog.log.memory import MemoryLog
from tidelog.log.port import Cleanup, Log, Member, NewRecord, TopicPartition, TopicSpec
from tidelog.log.topics import Topics
from tidelog_events.identity import Partition
from tidelog_events.instants import SECOND, Instant
from tidelog_projections.batch import Batch, Happened, Mark
from tidelog_projections.inspection import Inspection
from tidelog_projections.projection import Projection


async def the(patient: Patient, check: str) -> Finding:
    """The one finding of a check."""
    (finding,) = of(await patient.examine(check), check)
    return finding


async def test_a_healthy_installation_is_well_all_over(patient: Patient) -> None:
    await patient.initialise()
    async with patient.engine(), patient.projector() as projector:
        await patient.enqueue(2)
        await eventually(lambda: projector.counters.records >= 2 * PARTITIONS)
        findings = await patient.examine()
    assert ailments(findings) == []
    assert [name for name in NAMES if not of(findings, name)] == []
    owners = [finding.message for finding in of(findings, "owners")]
    assert [message.partition(":")[0] for message in owners] == ["engine", "projector"]
    assert all("partitions 0-2" in message for message in owners)


async def test_an_installation_that_never_ran_only_lacks_its_roles(patient: Patient) -> None:
    await patient.initialise()
    findings = await patient.examine()
    assert [finding.check for finding in ailments(findings)] == ["owners", "owners"]
    assert all(not finding.unreachable for finding in findings)


async def test_without_an_engine_commands_are_not_decided(patient: Patient) -> None:
    await patient.initialise()
    async with await patient.connect() as log:
        producer = await log.producer()
        command = NewRecord(patient.topics.commands, 1, b"q", b"{}")
        await producer.append([command, command], timeout=30)

    engine, _ = of(await patient.examine("owners"), "owners")
    assert engine.health is Health.ERROR
    assert engine.message == "no engine runs: nothing is decided there"
    assert engine.advice == "Start one: `tidelog engine`."

    lag = await the(patient, "lag")
    assert lag.health is Health.ERROR
    assert "up to 2 commands not decided, and nothing happens in partition 1" in lag.message

    async with patient.engine():
        while (lag := await the(patient, "lag")).message != "engine: every command is decided":
            assert lag.health is Health.OK
    rejects = (await patient.examine("rejects"))[0]
    assert rejects.health is Health.WARNING
    assert "holds 2 records that were no commands" in rejects.message


async def test_a_lagging_projector_is_told_by_the_age_of_what_is_missing(patient: Patient) -> None:
    await patient.initialise()
    async with patient.engine():
        async with patient.projector() as projector:
            await patient.enqueue()
            await eventually(lambda: projector.counters.records >= PARTITIONS)
        assert (await the(patient, "projection")).message == "Postgres has every event of the log"
        await patient.enqueue(4)

    now = await the(patient, "projection")
    assert f"Postgres lacks {4 * PARTITIONS} events of partitions 0-2" in now.message
    assert now.health is Health.OK
    for seconds, health in ((30, Health.WARNING), (100, Health.ERROR)):
        later = replace(patient, clock=lambda seconds=seconds: Instant(wall_clock() + seconds * SECOND))  # type: ignore[misc]
        found = await the(later, "projection")
        assert found.health is health
        assert found.advice is not None
        assert "tidelog projector" in found.advice


async def test_rows_of_another_log_are_told(patient: Patient) -> None:
    await patient.initialise()
    story = Story(Partition(1))
    (event,) = story.enqueue()
    async with await patient.connect() as log:
        await (await log.producer()).append(records_of([event], patient.topics), timeout=30)
    async with await Projection.connect(patient.dsn) as projection:
        last = Mark(0, b"of another log")
        await projection.apply(Batch(event.partition, [Happened(0, event)], 1, last))
    found = await the(patient, "projection")
    assert found.health is Health.ERROR
    assert found.message.startswith(
        "partition 1: the log does not hold the record that Postgres has read last"
    )
    assert found.advice is not None
    assert 0 < found.advice.find("TIDELOG_LOG") < found.advice.find("`tidelog rebuild`")


async def test_a_topic_of_the_wrong_cleanup_is_an_error(patient: Patient) -> None:
    state = patient.topics.state
    await patient.initialise(but=TopicSpec(state, PARTITIONS, Cleanup.DELETE))
    topics = await the(patient, "topics")
    assert topics.health is Health.ERROR
    assert topics.message == f"{state}: cleanup.policy is delete, not compact"


async def test_other_counts_and_shorter_retention_are_named(patient: Patient) -> None:
    commands = patient.topics.commands
    await patient.initialise(but=TopicSpec(commands, PARTITIONS + 1, retention_seconds=3_600))
    found = of(await patient.examine("topics"), "topics")
    assert [(finding.health, finding.message) for finding in found] == [
        (Health.ERROR, f"{commands}: partitions is {PARTITIONS + 1}, not {PARTITIONS}"),
        (Health.WARNING, f"{commands}: retention.ms is 3600000, not 604800000"),
    ]


async def test_missing_topics_and_a_missing_schema_ask_for_init(patient: Patient) -> None:
    findings = await patient.examine()
    topics, postgres = of(findings, "topics")[0], of(findings, "postgres")[0]
    for finding in (topics, postgres):
        assert finding.health is Health.ERROR
        assert "tidelog init" in (finding.advice or "")
    assert not any(finding.unreachable for finding in findings)


async def test_a_postgres_that_is_down_does_not_hide_the_rest(patient: Patient) -> None:
    await patient.initialise()
    away = replace(patient, dsn="postgresql://ann:s3cret@127.0.0.1:1/jobs")
    findings = await away.examine()
    (postgres,) = of(findings, "postgres")
    assert postgres.unreachable
    assert "ann@127.0.0.1:1/jobs" in postgres.message
    assert "s3cret" not in postgres.message
    assert of(findings, "topics")[0].health is Health.OK
    assert of(findings, "projection") == []
    assert of(await away.examine("projection"), "postgres") == [postgres]


async def test_a_database_that_is_not_there_is_not_reachable(patient: Patient) -> None:
    (postgres,) = await replace(patient, dsn=in_database(patient.dsn, "nobody_made_it")).examine("postgres")
    assert postgres.unreachable


async def test_any_group_on_the_topics_is_told_whatever_it_is_called(patient: Patient) -> None:
    """Left behind by its consumers; then served, and slow; then all read."""
    name, transitions = f"billing-{uuid4().hex}", patient.topics.transitions

    async def told(patient: Patient) -> Finding:
        (found,) = [
            one for one in of(await patient.examine("lag"), "lag") if one.message.startswith("group ")
        ]
        return found

    await patient.initialise()
    async with await patient.connect() as log:
        other = await log.join(f"{name}-other", await _a_topic_of_somebody_else(log))
        member = await log.join(name, transitions)
        await eventually_shares(member, PARTITIONS)
        await eventually_shares(other, 1)
        await member.commit(dict.fromkeys(range(PARTITIONS), 0), timeout=30)
        await other.commit({0: 0}, timeout=30)
        await member.close()
    async with patient.engine():
        await patient.enqueue(2)
    left = await told(patient)
    assert left.health is Health.WARNING
    assert f"group {name}: has yet to read {2 * PARTITIONS} records; the oldest is" in left.message
    assert left.message.endswith(", and nobody is in it")

    async with await patient.connect() as log:
        member = await log.join(name, transitions)
        await eventually_shares(member, PARTITIONS)
        assert (await told(patient)).health is Health.OK
        late = await told(replace(patient, clock=lambda: Instant(wall_clock() + 61 * SECOND)))
        assert late.health is Health.WARNING
        assert "start more of them" in (late.advice or "")
        ends = [await log.end_offset(TopicPartition(transitions, number)) for number in range(PARTITIONS)]
        await member.commit(dict(enumerate(ends)), timeout=30)
        assert (await told(patient)).message == f"group {name}: has read all"


async def eventually_shares(member: Member, partitions: int) -> None:
    async with asyncio.timeout(30):
        while len(member.assignment) < partitions:
            await member.changed(timeout=1)


async def _a_topic_of_somebody_else(log: Log) -> str:
    name = f"topic-{uuid4().hex}"
    await log.create_topics([TopicSpec(name, 1)])
    return name


async def test_nothing_that_hangs_holds_it_up() -> None:
    never = asyncio.Event()

    @asynccontextmanager
    async def hangs() -> AsyncIterator[Log]:
        await never.wait()
        yield MemoryLog()

    async def hangs_too() -> Inspection:
        await never.wait()
        raise AssertionError

    installation = Installation(hangs, hangs_too, Topics(), 1, None, service_seconds=0.05)
    found = await examine(installation, NAMES)
    assert [(finding.check, finding.unreachable) for finding in found] == [("log", True), ("postgres", True)]
