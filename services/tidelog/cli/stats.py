"""`tidelog stats`: the role that keeps the rolling statistics."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tidelog.cli.exits import WrongUse
from tidelog.cli.logs import LogLevel, set_up_logging
from tidelog.cli.options import LifelineOption, LogLevelOption
from tidelog.cli.session import open_log, open_projection, read_settings
from tidelog.cli.signals import stop_on_signals
from tidelog.cli.waiting import require_topics, run_when_possible

if TYPE_CHECKING:
    from tidelog.cli.threads import Role
    from tidelog.settings import Settings

logger = logging.getLogger("tidelog.cli")


async def stats(lifeline: LifelineOption = None, log_level: LogLevelOption = None) -> None:
    """Count what happens, minute by minute, into the table queue_stats. Needs Kafka and the extra `faust`."""
    set_up_logging(log_level or LogLevel.INFO)
    settings = read_settings()
    # What is not installed, and what no waiting would mend, is said before anything is waited for.
    try:
        from tidelog.observer.faust import NeedsKafka, require_kafka
    except ModuleNotFoundError as error:
        raise WrongUse(
            f"`tidelog stats` needs the package {error.name}. Install it: pip install 'tidelog[faust]'."
        ) from None
    try:
        require_kafka(settings)
    except NeedsKafka as error:
        raise WrongUse(f"{error}.") from None
    async with stop_on_signals(lifeline) as stop:
        await run_when_possible(lambda: _statistics(settings), stop)


@asynccontextmanager
async def _statistics(settings: Settings) -> AsyncIterator[Role]:
    from tidelog.statistics.agent import Statistics

    async with open_log(settings) as log, open_projection(settings) as projection:
        await require_topics(log, settings.topics)
        partitions = await log.partitions(settings.topics.transitions)
        logger.info("statistics start, from the log %s to Postgres %s", log.address, projection.address)
        yield Statistics(settings, partitions, projection).run
