"""Clocks: due times, leases and schedules are decided by the engines' own, and read by people elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.lag import engine_progress
from tidelog.doctor.site import Site
from tidelog_events.instants import SECOND, Instant
from tidelog_projections.inspection import Inspection

NAME = "clock"
_NOTICED_SECONDS = 1.0
_WRONG_SECONDS = 60.0
_SYNCHRONISE = "Synchronise the clocks of all hosts (NTP)."


async def check_clocks(site: Site) -> list[Finding]:
    """This host against Postgres, and against the time as of which the engines decide."""
    tps = await site.all_of(site.topics.state)
    progress = await engine_progress(site, [tp.partition for tp in tps])
    times = {partition: one.now for partition, one in progress.items() if one.now is not None}
    findings = [judge_engines(times, site.clock())]
    if site.postgres is not None:
        findings.append(judge_postgres_clock(site.postgres))
    return findings


def judge_postgres_clock(postgres: Inspection) -> Finding:
    """The difference between two clocks, which can be wrong by half the time that asking took."""
    ahead = postgres.clock_ahead
    message = (
        f"Postgres's clock is {abs(ahead):.3f} s {'ahead of' if ahead >= 0 else 'behind'} this host's "
        f"(within {postgres.clock_within:.3f} s)"
    )
    return _judged(max(0.0, abs(ahead) - postgres.clock_within), message)


def judge_engines(times: Mapping[int, Instant], now: Instant) -> Finding:
    """Only an engine that is ahead can be told: one that is behind may just have had nothing to do."""
    if not times:
        return Finding(NAME, Health.OK, "no engine has decided anything yet, so there is no clock to compare")
    partition, newest = max(times.items(), key=lambda item: item[1])
    ahead = (newest - now) / SECOND
    if ahead <= _NOTICED_SECONDS:
        return Finding(NAME, Health.OK, "no engine has decided ahead of this host's clock")
    return _judged(
        ahead, f"the engine of partition {partition} decides as of {ahead:.1f} s ahead of this host's clock"
    )


def _judged(seconds: float, message: str) -> Finding:
    if seconds <= _NOTICED_SECONDS:
        return Finding(NAME, Health.OK, message)
    return Finding(NAME, Health.WARNING if seconds <= _WRONG_SECONDS else Health.ERROR, message, _SYNCHRONISE)
