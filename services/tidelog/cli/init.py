"""`tidelog init`: make what an installation needs, or say what does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.cli.console import print_json, print_line
from tidelog.cli.options import JsonOption
from tidelog.cli.session import open_log, open_projection, read_settings

if TYPE_CHECKING:
    from tidelog.settings import Settings


@dataclass(frozen=True, slots=True)
class Initialised:
    """Which topics were made, and where log and Postgres are."""

    log: str
    postgres: str
    topics: list[str]


async def initialise(settings: Settings) -> Initialised:
    """Make the topics and the Postgres schema that are not there yet.

    Raises:
        TopicMismatch: a topic exists with another partition count or cleanup. Nothing was made.
        LogError, ProjectionError: the log or Postgres cannot be used.
    """
    async with open_log(settings, create=True) as log:
        created = await log.create_topics(settings.topics.specs(settings.partitions))
        async with open_projection(settings, create=True) as projection:
            return Initialised(log.address, projection.address, created)


async def init(as_json: JsonOption = False) -> None:
    """Make the topics and the Postgres schema. What fits is left as it is, what does not is refused."""
    settings = read_settings()
    made = await initialise(settings)
    if as_json:
        print_json({"log": made.log, "postgres": made.postgres, "topics_created": made.topics})
        return
    topics = f"created {', '.join(made.topics)}" if made.topics else "all topics were there already"
    print_line(f"log {made.log}: {topics}")
    print_line(f"Postgres {made.postgres}: the schema is up to date")
