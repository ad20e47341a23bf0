"""The assignment of partitions: balanced, the same for everybody, and moving no more than it must."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.assignment import balance

MEMBERS = st.sets(st.sampled_from([f"member-{number}" for number in range(9)]), min_size=1)
PARTITIONS = st.integers(min_value=1, max_value=30)


@given(PARTITIONS, MEMBERS, MEMBERS)
def test_every_partition_has_one_owner_and_no_share_is_larger_by_two(
    partitions: int, before: set[str], after: set[str]
) -> None:
    result = balance(partitions, after, balance(partitions, before, {}))
    sizes = Counter(result.values())
    assert sorted(result) == list(range(partitions))
    assert set(sizes) <= after
    assert max(sizes.values()) - min(sizes[member] for member in after) <= 1


@given(PARTITIONS, MEMBERS)
def test_a_balanced_assignment_is_left_as_it_is(partitions: int, members: set[str]) -> None:
    assignment = balance(partitions, members, {})
    assert balance(partitions, members, assignment) == assignment


@given(PARTITIONS, MEMBERS, st.data())
def test_only_the_share_of_who_leaves_moves(partitions: int, members: set[str], data: st.DataObject) -> None:
    before = balance(partitions, members, {})
    leaving = data.draw(st.sampled_from(sorted(members)))
    after = balance(partitions, members - {leaving}, before)
    assert all(after[partition] == owner for partition, owner in before.items() if owner != leaving and after)


@given(PARTITIONS, MEMBERS)
def test_who_joins_takes_only_its_own_share(partitions: int, members: set[str]) -> None:
    before = balance(partitions, members, {})
    after = balance(partitions, {*members, "new"}, before)
    assert all(after[partition] in {owner, "new"} for partition, owner in before.items())


def test_without_members_nobody_serves() -> None:
    assert balance(3, [], {0: "gone"}) == {}
