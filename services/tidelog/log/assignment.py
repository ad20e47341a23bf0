"""Who serves which partition of a group: balanced, deterministic, and moving as little as it can."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def balance(partitions: int, members: Collection[str], current: Mapping[int, str]) -> dict[int, str]:
    """Give each partition to a member, so that no two shares differ by more than one.

    A member keeps what it has as far as the balance allows, because taking over a partition costs its new
    owner a restore. The same arguments give the same answer, in any process; a balanced assignment is
    returned as it is.

    Args:
        partitions: how many there are.
        members: the ids of the living members; without any, nobody gets anything.
        current: the assignment until now; owners that are no members count for nothing.
    """
    if not members:
        return {}
    held: dict[str, list[int]] = {member: [] for member in sorted(members)}
    for partition in range(partitions):
        owner = current.get(partition)
        if owner in held:
            held[owner].append(partition)
    least, extra = divmod(partitions, len(held))
    # The shares that are larger by one go to those who hold the most: that moves the fewest partitions.
    by_holding = sorted(held, key=lambda member: -len(held[member]))
    quota = {member: least + (rank < extra) for rank, member in enumerate(by_holding)}
    result = {partition: member for member, share in held.items() for partition in share[: quota[member]]}
    free = iter([partition for partition in range(partitions) if partition not in result])
    for member, share in held.items():
        for _ in range(quota[member] - len(share)):
            result[next(free)] = member
    return result
