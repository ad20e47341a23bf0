"""Who serves which partition: the engines and the projectors, by their consumer groups."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.site import Site
from tidelog.log.port import GroupDescription
from tidelog.words import listed

NAME = "owners"


@dataclass(frozen=True, slots=True)
class Role:
    """A role whose processes share the partitions of a topic.

    Attributes:
        name: of the role and its command.
        group: the consumer group.
        topic: what it shares out.
        without: what does not happen while nobody serves a partition.
    """

    name: str
    group: str
    topic: str
    without: str


def roles(site: Site) -> tuple[Role, Role]:
    """The roles that have groups."""
    topics = site.topics
    return (
        Role("engine", topics.engine_group, topics.commands, "nothing is decided there"),
        Role("projector", topics.projector_group, topics.transitions, "Postgres is not kept up there"),
    )


async def check_owners(site: Site) -> list[Finding]:
    """Whether each partition has an engine and a projector."""
    groups = {group.name: group for group in await site.log.groups(f"{site.topics.prefix}-")}
    return [
        judge_owners(role, await site.log.partitions(role.topic), groups.get(role.group))
        for role in roles(site)
    ]


def judge_owners(role: Role, partitions: int, group: GroupDescription | None) -> Finding:
    """Who of a group serves which partition."""
    if group is None or not group.members:
        return Finding(
            NAME,
            Health.ERROR,
            f"no {role.name} runs: {role.without}",
            f"Start one: `tidelog {role.name}`.",
        )
    if not group.is_settled:
        return Finding(
            NAME,
            Health.WARNING,
            f"the {role.name}s share out their partitions just now",
            "Look again in a few seconds.",
        )
    shares = {
        member: sorted(tp.partition for tp in member.partitions if tp.topic == role.topic)
        for member in group.members
    }
    ownerless = set(range(partitions)) - {partition for share in shares.values() for partition in share}
    shown = "; ".join(
        f"{member.id}{f' ({member.host})' if member.host else ''}: {listed(share) if share else 'standby'}"
        for member, share in sorted(shares.items(), key=lambda item: (not item[1], item[1], item[0].id))
    )
    if ownerless:
        return Finding(
            NAME,
            Health.ERROR,
            f"no {role.name} for {listed(ownerless)}: {role.without}. The others: {shown}",
            f"Look again in a few seconds; if it stays, restart the {role.name}s.",
        )
    return Finding(NAME, Health.OK, f"{role.name}: {shown}")
