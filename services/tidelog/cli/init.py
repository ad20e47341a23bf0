"""`tidelog init`: make what an installation needs, or say what does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.cli.console import print_json, print_line, say
from tidelog.cli.options import JsonOption
from tidelog.cli.session import open_log, open_projection, read_settings

if TYPE_CHECKING:
    from tidelog.log.fitness import Difference
    from tidelog.log.port import Log, TopicDescription, TopicSpec
    from tidelog.settings import Settings


@dataclass(frozen=True, slots=True)
class Initialised:
    """Where log and Postgres are, and the topics.

    Attributes:
        created: the names of topics that were made.
        found: the names of those that were there.
        weaker: what of those found is weaker than it would have been made, and works.
    """

    log: str
    postgres: str
    created: list[str]
    found: list[str]
    weaker: list[str]


async def initialise(settings: Settings) -> Initialised:
    """Make the topics and the Postgres schema that are not there yet.

    Raises:
        TopicMismatch: topics exist with another partition count or cleanup, or are kept less safely than the
            settings ask for. The message names all that differs. Nothing was made.
        LogError, ProjectionError: the log or Postgres cannot be used.
    """
    async with open_log(settings, create=True) as log:
        specs = settings.topics.specs(settings.partitions)
        found = await log.describe_topics([spec.name for spec in specs])
        weaker = await _compare(log, settings, specs, found)
        created = await log.create_topics(specs)
        async with open_projection(settings, create=True) as projection:
            there = [spec.name for spec in specs if spec.name not in created]
            return Initialised(log.address, projection.address, created, there, weaker)


async def _compare(
    log: Log, settings: Settings, specs: Sequence[TopicSpec], found: Mapping[str, TopicDescription]
) -> list[str]:
    """What is weaker and works. Raises `TopicMismatch` for what does not, or was asked for by a setting."""
    from tidelog.log.fitness import FIXED, Setting, differences
    from tidelog.log.port import TopicMismatch

    asked_for = {
        Setting.REPLICATION: settings.kafka_replication_factor,
        Setting.MIN_INSYNC: settings.kafka_min_insync_replicas,
    }
    replication = await _replication(log, settings)
    refused: list[Difference] = []
    weaker: list[str] = []
    for spec in specs:
        if spec.name not in found:
            continue
        for difference in differences(spec, found[spec.name], replication):
            if difference.setting in FIXED or asked_for.get(difference.setting) is not None:
                refused.append(difference)
            else:
                weaker.append(str(difference))
    if refused:
        listed = "; ".join(map(str, refused))
        raise TopicMismatch(
            f"These topics at {log.address} are there and do not fit: {listed}. Partitions and cleanup are "
            "fixed at creation: correct the setting (TIDELOG_PARTITIONS), or use another prefix "
            "(TIDELOG_PREFIX). Replication can be changed by Kafka's own tools. Nothing was made."
        )
    return weaker


async def _replication(log: Log, settings: Settings) -> tuple[int, int] | None:
    """What is asked of the copies. Raises `WrongKafkaOptions` when the cluster has too few brokers."""
    from tidelog.log.kafka.options import WrongKafkaOptions

    if settings.kafka is None:
        return None
    try:
        return settings.kafka.replication.for_brokers((await log.describe()).brokers)
    except WrongKafkaOptions as error:
        error.add_note(
            "The settings are TIDELOG_KAFKA_REPLICATION_FACTOR and TIDELOG_KAFKA_MIN_INSYNC_REPLICAS."
        )
        raise


async def init(as_json: JsonOption = False) -> None:
    """Make the topics and the Postgres schema. What fits is left as it is, what does not is refused."""
    settings = read_settings()
    made = await initialise(settings)
    if as_json:
        print_json(
            {
                "log": made.log,
                "postgres": made.postgres,
                "topics_created": made.created,
                "topics_found": made.found,
                "weaker": made.weaker,
            }
        )
        return
    print_line(f"log {made.log}: {_told(made)}")
    print_line(f"Postgres {made.postgres}: the schema is up to date")
    for difference in made.weaker:
        say(f"tidelog: {difference}. It works; `tidelog doctor` says what it means.")


def _told(made: Initialised) -> str:
    created = f"created {', '.join(made.created)}" if made.created else ""
    found = f"{', '.join(made.found)} were there already" if made.created else "all topics were there already"
    return "; ".join(part for part in (created, found if made.found else "") if part)
