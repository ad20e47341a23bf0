"""What was set aside: records that were no commands, and events that Postgres could not take in."""

from __future__ import annotations

import time

from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.site import LOOK_SECONDS, Site
from tidelog.log.port import Record, TopicPartition
from tidelog.log.tail import newest_records
from tidelog.words import plural
from tidelog_projections.inspection import Inspection

NAME = "rejects"
_MOST_COUNTED = 1_000
_READ_SECONDS = 1.0
_REASON_CHARS = 200


async def check_rejects(site: Site) -> list[Finding]:
    """How many there are, and why the newest one is."""
    findings = [await _commands(site)]
    if site.postgres is not None:
        findings.append(judge_events(site.postgres))
    return findings


async def _commands(site: Site) -> Finding:
    topic = site.topics.rejects
    newest = await newest_records(site.log, await site.all_of(topic), timeout=LOOK_SECONDS)
    count = 0
    for tp, record in newest.items():
        count += await _count(site, tp, record.offset + 1)
    return judge_commands(topic, count, list(newest.values()))


async def _count(site: Site, tp: TopicPartition, end: int) -> int:
    """How many records there are before `end`; it stops counting at `_MOST_COUNTED`."""
    reader = await site.log.reader({tp: await site.log.start_offset(tp)})
    deadline = time.monotonic() + LOOK_SECONDS
    count = 0
    try:
        while reader.position(tp) < end and count < _MOST_COUNTED and time.monotonic() < deadline:
            count += len(await reader.read(max_records=_MOST_COUNTED, timeout=_READ_SECONDS))
    finally:
        await reader.close()
    return count


def judge_commands(topic: str, count: int, newest: list[Record]) -> Finding:
    """Records on the commands topic that were no commands."""
    if not count:
        return Finding(NAME, Health.OK, f"{topic} is empty: every record was a command")
    more = " or more" if count >= _MOST_COUNTED else ""
    headers = dict(newest[-1].headers)
    where = f"{_text(headers, 'topic')}[{_text(headers, 'partition')}] offset {_text(headers, 'offset')}"
    return Finding(
        NAME,
        Health.WARNING,
        f"{topic} holds {plural(count, 'record')}{more} that were no commands; the newest, of {where}: "
        f"{_text(headers, 'reason')}",
        "Correct the producer that wrote it. The topic keeps the original bytes, and forgets them in time.",
    )


def judge_events(postgres: Inspection) -> Finding:
    """Events that no column can hold, or that cannot be read."""
    if not postgres.rejects:
        return Finding(NAME, Health.OK, "Postgres took in every event that it read")
    return Finding(
        NAME,
        Health.WARNING,
        f"{plural(postgres.rejects, 'event')} could not be taken into Postgres; the newest: "
        f"{(postgres.newest_reject or '')[:_REASON_CHARS]}",
        "The jobs concerned are shown as they were before. See tidelog.projection_rejects.",
    )


def _text(headers: dict[str, bytes], name: str) -> str:
    return headers.get(name, b"?").decode(errors="replace")[:_REASON_CHARS]
