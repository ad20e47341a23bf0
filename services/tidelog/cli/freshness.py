"""Reads that are as new as the log was when they were asked for, where Postgres can keep up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.cli.console import say
from tidelog.cli.session import open_log
from tidelog_events.errors import TidelogError

if TYPE_CHECKING:
    from tidelog.settings import Settings
    from tidelog_events.identity import QueueName
    from tidelog_projections.projection import Projection


async def catch_up(settings: Settings, projection: Projection, queue: QueueName | None) -> None:
    """Wait a little until Postgres has what the log holds now, of one queue's partition or of all.

    A read goes on in any case: when it may be stale, people are told why.
    """
    from tidelog.inspection.freshness import wait_until_fresh

    try:
        async with open_log(settings) as log:
            behind = await wait_until_fresh(log, settings.topics.transitions, projection, queue)
    except TidelogError as error:
        say(f"tidelog: whether this is the newest state is not known: {error}")
        return
    if behind:
        names = ", ".join(map(str, behind))
        say(
            f"tidelog: Postgres is behind the log {settings.log} (partitions: {names}); what follows is "
            "older. Check that `tidelog projector` runs."
        )
