"""How what was seen is judged, where no real installation of a test can be made so ill."""

from __future__ import annotations

import pytest

from tidelog.doctor import clocks, groups, owners, topics
from tidelog.doctor.findings import Finding, Health, worst
from tidelog.doctor.groups import GroupLag
from tidelog.doctor.owners import Role
from tidelog.doctor.projection import is_of_another_log
from tidelog.doctor.services import judge_log, judge_postgres
from tidelog.log.kafka.release import release_of
from tidelog.log.port import (
    Cleanup,
    GroupDescription,
    GroupMember,
    LogDescription,
    Record,
    ReplicaState,
    TopicDescription,
    TopicPartition,
    TopicSpec,
)
from tidelog.words import listed, plural
from tidelog_events.identity import Partition, Sequence
from tidelog_events.instants import SECOND, Instant
from tidelog_projections.batch import Position
from tidelog_projections.inspection import Inspection
from tidelog_projections.migration import SCHEMA_VERSION

ENGINE = Role("engine", "t-engine", "t.commands", "nothing is decided there")
SPEC = TopicSpec("t.state", 2, Cleanup.COMPACT)
NOW = Instant(1_000_000 * SECOND)


def topic(**replicas: object) -> TopicDescription:
    """A topic of three copies, sound but for what is said."""
    sound = ReplicaState(3, 2, (), (), (), takes_largest=True)
    state = ReplicaState(**{**{name: getattr(sound, name) for name in sound.__slots__}, **replicas})
    return TopicDescription("t.state", 2, "compact", None, state)


def test_a_sound_topic_is_well() -> None:
    (finding,) = topics.judge_topics([SPEC], {"t.state": topic()}, (3, 2))
    assert finding.health is Health.OK


@pytest.mark.parametrize(
    ("replicas", "health", "words"),
    [
        ({"factor": 2}, Health.WARNING, "replication factor is 2, not 3"),
        ({"min_insync": 1}, Health.WARNING, "min.insync.replicas is 1, not 2"),
        ({"leaderless": (0, 1)}, Health.ERROR, "partitions 0-1 can be neither read nor written"),
        ({"below_min_insync": (1,)}, Health.ERROR, "partition 1 cannot be written"),
        ({"missing_copies": (0,)}, Health.WARNING, "partition 0 with fewer copies in sync"),
        ({"takes_largest": False}, Health.ERROR, "max.message.bytes"),
    ],
)
def test_a_topic_that_is_kept_less_safely_is_told(
    replicas: dict[str, object], health: Health, words: str
) -> None:
    (finding,) = topics.judge_topics([SPEC], {"t.state": topic(**replicas)}, (3, 2))
    assert finding.health is health
    assert words in finding.message
    assert finding.advice


def member(name: str, *partitions: int) -> GroupMember:
    return GroupMember(name, "10.0.0.1", frozenset(TopicPartition("t.commands", p) for p in partitions))


def test_partitions_without_an_owner_are_named_beside_the_others() -> None:
    group = GroupDescription("t-engine", True, (member("a", 0, 1), member("b")), {})
    finding = owners.judge_owners(ENGINE, 4, group)
    assert finding.health is Health.ERROR
    assert "no engine for partitions 2-3" in finding.message
    assert "a (10.0.0.1): partitions 0-1; b (10.0.0.1): standby" in finding.message


@pytest.mark.parametrize(
    ("level", "name"),
    [(14, "older than 3.7"), (15, "3.7"), (19, "3.7"), (25, "4.0"), (27, "4.1"), (99, "newer than 4.1")],
)
def test_the_highest_metadata_version_tells_the_release(level: int, name: str) -> None:
    assert (release_of(level).name, release_of(level).is_supported) == (name, level >= 15)


def test_brokers_that_are_too_old_are_an_error() -> None:
    finding = judge_log("kafka://k:9092", LogDescription("kafka", "older than 3.7", 3, is_supported=False))
    assert finding.health is Health.ERROR
    assert finding.message == "kafka://k:9092 answers: Kafka older than 3.7, 3 brokers"
    assert "3.7 or later" in (finding.advice or "")


def test_a_group_that_missed_records_is_told() -> None:
    group = GroupDescription("export", True, (GroupMember("m", "", frozenset()),), {})
    finding = groups.judge_group("lag", group, GroupLag(0, None, [3]), NOW)
    assert finding.health is Health.WARNING
    assert "of partition 3 the log does not hold what it is to read next" in finding.message


def test_a_group_whose_members_cannot_be_seen_is_not_called_empty() -> None:
    group = GroupDescription("export", False, (), {})
    assert groups.judge_group("lag", group, GroupLag(5, None, []), NOW).health is Health.OK


def test_a_group_that_shares_out_anew_is_no_error() -> None:
    finding = owners.judge_owners(ENGINE, 4, GroupDescription("t-engine", False, (member("a"),), {}))
    assert finding.health is Health.WARNING


@pytest.mark.parametrize(
    ("ahead", "within", "health"),
    [
        (0.9, 0.0, Health.OK),
        (-0.9, 0.0, Health.OK),
        (1.5, 1.0, Health.OK),  # it may be all of it the time that asking took
        (-1.5, 0.1, Health.WARNING),
        (61.0, 0.1, Health.ERROR),
    ],
)
def test_a_clock_of_postgres_that_differs(ahead: float, within: float, health: Health) -> None:
    finding = clocks.judge_postgres_clock(seen(clock_ahead=ahead, clock_within=within))
    assert finding.health is health
    assert ("behind" if ahead < 0 else "ahead of") in finding.message


@pytest.mark.parametrize(
    ("ahead", "health"),
    [(-3_600.0, Health.OK), (0.5, Health.OK), (2.0, Health.WARNING), (90.0, Health.ERROR)],
)
def test_an_engine_that_decides_ahead_of_time(ahead: float, health: Health) -> None:
    times = {0: NOW, 1: Instant(NOW + round(ahead * SECOND))}
    assert clocks.judge_engines(times, NOW).health is health


def seen(
    *, schema_version: int = SCHEMA_VERSION, clock_ahead: float = 0.0, clock_within: float = 0.0
) -> Inspection:
    return Inspection("postgresql://db", "16.2", schema_version, clock_ahead, clock_within, {}, 0, None)


def test_a_server_without_a_schema_is_an_error() -> None:
    assert judge_postgres(seen(schema_version=0)).health is Health.ERROR
    assert judge_postgres(seen()).health is Health.OK


@pytest.mark.parametrize(
    ("position", "bounds", "sequence", "foreign"),
    [
        ((4, 10), (0, 12), 5, False),
        ((4, 10), (0, 9), 5, True),  # the log is shorter than what was read of it
        ((4, 10), (11, 12), 5, True),  # what is to be read next is gone
        ((9, 10), (0, 12), 5, True),  # its events are younger than those that were read
        ((-1, 0), (0, 0), None, False),
    ],
)
def test_a_position_of_another_log(
    position: tuple[int, int], bounds: tuple[int, int], sequence: int | None, foreign: bool
) -> None:
    reached = Position(Partition(0), Sequence(position[0]), position[1])
    newest = (
        None
        if sequence is None
        else Record("t", 0, 11, b"k", b'{"sequence": %d, "at": "2026-01-01T00:00:00Z"}' % sequence)
    )
    assert is_of_another_log(reached, *bounds, newest) is foreign


def test_the_worst_counts() -> None:
    findings = [Finding("log", health, "") for health in (Health.OK, Health.ERROR, Health.WARNING)]
    assert worst(findings) is Health.ERROR
    assert worst([]) is Health.OK


def test_numbers_in_words() -> None:
    assert listed([3]) == "partition 3"
    assert listed([7, 1, 0, 2]) == "partitions 0-2, 7"
    assert (plural(1, "event"), plural(1_200, "event")) == ("1 event", "1,200 events")
