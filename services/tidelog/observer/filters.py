"""Which transitions an observer is told of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

from tidelog.observer.errors import BadObserver
from tidelog_events.identity import InvalidName, QueueName, queue_name
from tidelog_events.states import JobState
from tidelog_events.transitions import TRANSITION_CLASSES, JobFact, JobTransition, Transition
from tidelog_events.wire import Tag

TagFilter: TypeAlias = str | Mapping[str, str]
"""A label, or `{"key": "value"}`, as tags are written elsewhere."""

_TYPES = frozenset(cls.TYPE for cls in TRANSITION_CLASSES)


@dataclass(frozen=True, slots=True)
class TransitionFilter:
    """What is not said does not matter; what is said must all hold.

    Attributes:
        types: types of transitions; None: the state changes, which are those with an `ordinal`.
        states: states that a job is in after the transition.
        wire_names, queues: of the job; `queues` also of facts about a queue.
        tags: the job must have each of them, those that this very transition adds included.
    """

    types: frozenset[str] | None = None
    states: frozenset[JobState] | None = None
    wire_names: frozenset[str] | None = None
    queues: frozenset[QueueName] | None = None
    tags: frozenset[Tag] = frozenset()

    @classmethod
    def of(
        cls,
        what: str,
        *,
        types: Iterable[str] | None,
        states: Iterable[str] | None,
        wire_names: Iterable[str] | None,
        queues: Iterable[str] | None,
        tags: Iterable[TagFilter],
    ) -> Self:
        """The filter that a declaration asks for. `what` names the observer. Raises `BadObserver`."""
        return cls(
            types=_named(what, "types", types, _TYPES),
            states=_states(what, states),
            wire_names=_named(what, "wire_names", wire_names),
            queues=_queues(what, queues),
            tags=frozenset(_tag(what, tag) for tag in _several(what, "tags", tags)),
        )

    def concerns(self, event: Transition) -> bool:
        """Whether all holds that the transition itself can tell: everything but the tags."""
        if self.types is None:
            if not isinstance(event, JobTransition):
                return False
        elif event.TYPE not in self.types:
            return False
        if self.queues is not None and getattr(event, "queue", None) not in self.queues:
            return False
        if self.states is None and self.wire_names is None:
            return True
        if not isinstance(event, JobFact):
            return False
        return (self.states is None or event.state in self.states) and (
            self.wire_names is None or event.wire_name in self.wire_names
        )


def _several(what: str, option: str, given: Iterable[TagFilter]) -> tuple[TagFilter, ...]:
    if isinstance(given, (str, bytes, Mapping)):
        raise BadObserver(f"The {option} of {what} must be a list, not {given!r} alone.")
    return tuple(given)


def _named(
    what: str, option: str, given: Iterable[str] | None, known: frozenset[str] | None = None
) -> frozenset[str] | None:
    if given is None:
        return None
    names = _several(what, option, given)
    if not names:
        raise BadObserver(f"The {option} of {what} are empty, so it would see nothing; leave them out.")
    for name in names:
        if not isinstance(name, str) or not name or (known is not None and name not in known):
            there_are = "" if known is None else f" There are: {', '.join(sorted(known))}."
            raise BadObserver(f"The {option} of {what} name {name!r}, which is none.{there_are}")
    return frozenset(map(str, names))


def _states(what: str, given: Iterable[str] | None) -> frozenset[JobState] | None:
    names = _named(what, "states", given, frozenset(state.value for state in JobState))
    return None if names is None else frozenset(map(JobState, names))


def _queues(what: str, given: Iterable[str] | None) -> frozenset[QueueName] | None:
    names = _named(what, "queues", given)
    try:
        return None if names is None else frozenset(map(queue_name, names))
    except InvalidName as error:
        raise BadObserver(f"The queues of {what}: {error}.") from None


def _tag(what: str, tag: TagFilter) -> Tag:
    if isinstance(tag, str):
        if tag:
            return tag
    elif len(tag) == 1:
        ((key, value),) = tag.items()
        if key and value:
            return key, value
    raise BadObserver(f'The tags of {what} name {tag!r}; a tag is "label" or {{"key": "value"}}.')
