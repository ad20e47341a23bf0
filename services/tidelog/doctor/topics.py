"""The topics: that they are there, kept as they should be, and can be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.site import Site
from tidelog.log.fitness import Difference, Setting, differences
from tidelog.log.kafka.options import WrongKafkaOptions
from tidelog.log.port import TopicDescription, TopicSpec
from tidelog.words import listed, plural

NAME = "topics"

_MEANING: Mapping[Setting, tuple[Health, str]] = {
    Setting.PARTITIONS: (
        Health.ERROR,
        (
            "Partition counts are fixed at creation: if commands, links, transitions and state agree, set "
            "TIDELOG_PARTITIONS to what they have; else use another prefix."
        ),
    ),
    Setting.CLEANUP: (
        Health.ERROR,
        "Records are being lost, or kept for ever: set cleanup.policy back by Kafka's own tools.",
    ),
    Setting.RETENTION: (
        Health.WARNING,
        (
            "Records go earlier than Tidelog would have them go, commands perhaps before they are decided: "
            "raise retention.ms."
        ),
    ),
    Setting.REPLICATION: (
        Health.WARNING,
        (
            "Fewer copies are kept than this cluster allows: a broker that is lost may take records with it. "
            "Raise the replication factor by Kafka's own tools."
        ),
    ),
    Setting.MIN_INSYNC: (
        Health.WARNING,
        "A record counts although fewer copies have it than should: raise min.insync.replicas.",
    ),
}


async def check_topics(site: Site) -> list[Finding]:
    """Compare the topics with what `tidelog init` would make."""
    specs = site.topics.specs(site.partitions)
    found = await site.log.describe_topics([spec.name for spec in specs])
    replication = None
    if site.replication is not None:
        try:
            replication = site.replication.for_brokers((await site.log.describe()).brokers)
        except WrongKafkaOptions as error:
            return [
                *judge_topics(specs, found, None),
                Finding(
                    NAME,
                    Health.WARNING,
                    str(error),
                    "Start the brokers that are away, or correct TIDELOG_KAFKA_REPLICATION_FACTOR and "
                    "TIDELOG_KAFKA_MIN_INSYNC_REPLICAS.",
                ),
            ]
    return judge_topics(specs, found, replication)


def judge_topics(
    specs: Sequence[TopicSpec], found: Mapping[str, TopicDescription], replication: tuple[int, int] | None
) -> list[Finding]:
    """One finding for each thing that is wrong, and one that says so when nothing is."""
    findings = list(_missing(specs, found))
    wrong = [
        difference
        for spec in specs
        if spec.name in found
        for difference in differences(spec, found[spec.name], replication)
    ]
    findings += _by_setting(wrong)
    for topic in found.values():
        findings += _copies(topic)
    if findings:
        return findings
    return [Finding(NAME, Health.OK, f"{plural(len(specs), 'topic')}, as they should be")]


def _missing(specs: Sequence[TopicSpec], found: Mapping[str, TopicDescription]) -> Iterator[Finding]:
    missing = [spec.name for spec in specs if spec.name not in found]
    if missing:
        yield Finding(
            NAME,
            Health.ERROR,
            f"missing: {', '.join(missing)}",
            "Run `tidelog init`; TIDELOG_PREFIX says which names are looked for.",
        )


def _by_setting(wrong: Sequence[Difference]) -> Iterator[Finding]:
    """The topics that differ in the same way are one line: what is to be done is the same."""
    for setting, (health, advice) in _MEANING.items():
        those = [str(difference) for difference in wrong if difference.setting is setting]
        if those:
            yield Finding(NAME, health, "; ".join(those), advice)


def _copies(topic: TopicDescription) -> Iterator[Finding]:
    replicas = topic.replicas
    if replicas is None:
        return
    if replicas.leaderless:
        yield Finding(
            NAME,
            Health.ERROR,
            f"{topic.name}: {listed(replicas.leaderless)} can be neither read nor written: no broker leads",
            "Start the brokers that keep them.",
        )
    elif replicas.below_min_insync:
        yield Finding(
            NAME,
            Health.ERROR,
            f"{topic.name}: {listed(replicas.below_min_insync)} cannot be written, fewer than "
            f"{replicas.min_insync} copies are in sync",
            "Start the brokers that keep the others.",
        )
    elif replicas.missing_copies:
        yield Finding(
            NAME,
            Health.WARNING,
            f"{topic.name}: {listed(replicas.missing_copies)} with fewer copies in sync than there should be",
            "A broker is away, or has not caught up yet.",
        )
    if not replicas.takes_largest:
        yield Finding(
            NAME,
            Health.ERROR,
            f"{topic.name}: its max.message.bytes refuses records that Tidelog may write",
            "Set it to 1048588, Kafka's default, or more.",
        )
