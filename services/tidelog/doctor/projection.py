"""How old what Postgres shows is: the projectors' lag, in events and in time."""

from __future__ import annotations

from collections.abc import Collection

from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.site import LOOK_SECONDS, Site
from tidelog.inspection.freshness import Behind, missing
from tidelog.inspection.origin import differences
from tidelog.inspection.unread import place_and_time
from tidelog.log.port import Record, TopicPartition
from tidelog.log.tail import newest_records
from tidelog.words import listed, plural
from tidelog_events.identity import Partition
from tidelog_events.instants import SECOND, Instant
from tidelog_projections.batch import Mark, Position
from tidelog_projections.errors import WAYS_OUT

NAME = "projection"
_SOON_SECONDS = 10.0
_LATE_SECONDS = 60.0
_CHECK_SETTINGS = f"{WAYS_OUT}, while the old tables serve readers."


async def check_projection(site: Site) -> list[Finding]:
    """Compare the positions in Postgres with the ends of the transitions; nothing without Postgres."""
    if site.postgres is None:
        return []
    tps = await site.all_of(site.topics.transitions)
    newest = await newest_records(site.log, tps, timeout=LOOK_SECONDS)
    behind: list[Behind] = []
    foreign: list[int] = []
    marks: dict[TopicPartition, Mark] = {}
    for tp in tps:
        start = await site.log.start_offset(tp)
        position = site.postgres.positions.get(Partition(tp.partition))
        if position is None:
            position = Position(Partition(tp.partition), next_offset=start)
        record = newest.get(tp)
        if is_of_another_log(position, start, await site.log.end_offset(tp), record):
            foreign.append(tp.partition)
            continue
        if position.last is not None:
            marks[tp] = position.last
        if record is not None and record.offset >= position.next_offset:
            behind.append(await missing(site.log, tp, position, record, timeout=LOOK_SECONDS))
    mixed = sorted(tp.partition for tp in await differences(site.log, marks, timeout=LOOK_SECONDS))
    return judge_projection(
        [one for one in behind if one.partition not in mixed], foreign, mixed, site.clock()
    )


def is_of_another_log(position: Position, start: int, end: int, newest: Record | None) -> bool:
    """Whether a position cannot have come from this log, or the log has lost what is to be read next."""
    if not start <= position.next_offset <= end:
        return True
    sequence, _ = place_and_time(newest)
    return sequence is not None and sequence < position.sequence


def judge_projection(
    behind: Collection[Behind], foreign: Collection[int], mixed: Collection[int], now: Instant
) -> list[Finding]:
    """How much is missing, and since when.

    Args:
        behind: partitions with something missing.
        foreign: those in which the log has nothing to go on with.
        mixed: those in which it has, but not what was read last.
        now: by the clock of this host.
    """
    findings: list[Finding] = []
    if mixed:
        findings.append(
            Finding(
                NAME,
                Health.ERROR,
                f"{listed(mixed)}: the log does not hold the record that Postgres has read last; the rows "
                "come from another log than this one",
                _CHECK_SETTINGS,
            )
        )
    if foreign:
        findings.append(
            Finding(
                NAME,
                Health.ERROR,
                f"{listed(foreign)}: Postgres stands where this log has nothing to go on with; the log lost "
                "events that were not projected, or Postgres is another log's",
                _CHECK_SETTINGS,
            )
        )
    if behind:
        findings.append(_judge_age(behind, now))
    return findings or [Finding(NAME, Health.OK, "Postgres has every event of the log")]


def _judge_age(behind: Collection[Behind], now: Instant) -> Finding:
    events = sum(one.events for one in behind)
    oldest = min((one.oldest for one in behind if one.oldest is not None), default=None)
    newest = max((one.newest for one in behind if one.newest is not None), default=None)
    age = 0.0 if oldest is None else max(0.0, (now - oldest) / SECOND)
    ages = "" if newest is None else f", the newest {max(0.0, (now - newest) / SECOND):.1f} s"
    where = listed([one.partition for one in behind])
    message = f"Postgres lacks {plural(events, 'event')} of {where}; the oldest is {age:.1f} s old{ages}"
    if age <= _SOON_SECONDS:
        return Finding(NAME, Health.OK, message)
    return Finding(
        NAME,
        Health.WARNING if age <= _LATE_SECONDS else Health.ERROR,
        message,
        "Check that `tidelog projector` runs and what it logs of these partitions. If it cannot keep up, "
        "start more of them.",
    )
