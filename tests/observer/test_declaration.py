"""A mistake in a declaration is found when the module is imported, and says what to change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tidelog import App, BadObserver, ObserverContext, Transition
from tidelog.observer.errors import UnknownObserver
from tidelog_events.instants import SECOND

if TYPE_CHECKING:
    import tidelog as typed_only


async def takes_transition(transition: Transition) -> None:
    """A handler."""


@pytest.mark.parametrize(
    ("observer_id", "options", "words"),
    [
        ("", {}, "an id has 1 to 100 characters"),
        ("a/b", {}, "an id has 1 to 100 characters"),
        (
            "a",
            {"states": ["Dead"]},
            "states of observer 'a' name 'Dead', which is none. There are: AwaitingParent",
        ),
        ("a", {"states": "DeadLettered"}, "must be a list"),
        ("a", {"states": []}, "would see nothing"),
        ("a", {"types": ["died"]}, "name 'died', which is none"),
        ("a", {"queues": ["no queue"]}, "is no queue name"),
        ("a", {"queue": "q", "queues": ["r"]}, "both queue and queues"),
        ("a", {"tags": [{"a": "b", "c": "d"}]}, "a tag is"),
        ("a", {"tags": [""]}, "a tag is"),
        ("a", {"tags": "vip"}, "must be a list"),
        ("a", {"start": "tomorrow"}, "say 'beginning', 'now' or a datetime"),
        ("a", {"start": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001  that is what is wrong
        ("a", {"retry": 3}, "retry is 3; write Retry"),
        ("a", {"timeout": 0}, "must be more than 0 s"),
    ],
)
def test_a_wrong_declaration_is_refused(observer_id: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadObserver, match=words.replace("(", r"\(")):
        App().observer(observer_id, **options)(takes_transition)


def test_what_is_not_said_is_the_contracts_default() -> None:
    app = App()
    app.observer("a")(takes_transition)
    [definition] = app.observers
    assert (definition.timeout, definition.start) == (30.0, "now")
    assert not definition.retry.is_exhausted(9)
    assert definition.retry.is_exhausted(10)
    assert [definition.retry.delay_after(tries) // SECOND for tries in (1, 2, 3, 9)] == [2, 4, 8, 300]


def test_two_observers_of_one_id_are_refused() -> None:
    app = App()
    app.observer("a")(takes_transition)
    with pytest.raises(BadObserver, match="two observers 'a'"):
        app.observer("a")(lambda transition: None)  # noqa: ARG005  another one


def test_a_handler_of_another_shape_is_refused() -> None:
    def nothing() -> None: ...

    def two(_transition: Transition, _other: Transition) -> None: ...

    def by_name(*, transition: Transition) -> None: ...

    for handler in (nothing, two, by_name):
        with pytest.raises(BadObserver, match="must take the transition"):
            App().observer("a")(handler)


def test_a_handler_that_yields_is_refused_for_nothing_would_run_it() -> None:
    def yields(_transition: Transition) -> Iterator[int]:
        yield 1

    async def yields_too(_transition: Transition) -> AsyncIterator[int]:
        yield 1

    class Yields:
        async def __call__(self, _transition: Transition) -> AsyncIterator[int]:
            yield 1

    for handler in (yields, yields_too, Yields()):
        with pytest.raises(BadObserver, match="yields"):
            App().observer("a")(handler)


def test_the_function_stays_as_it_was_and_is_called_as_it_asks() -> None:
    calls: list[tuple[object, ...]] = []

    class Whole:
        async def __call__(self, ctx: ObserverContext) -> None: ...

    def both(transition: Transition, ctx: typed_only.ObserverContext, more: int = 1) -> None:
        calls.append((transition, ctx, more))

    app = App()
    assert app.observer("both")(both) is both
    app.observer("whole")(Whole())
    app.observer("plain")(takes_transition)
    shapes = {definition.observer_id: (definition.takes, definition.is_async) for definition in app.observers}
    assert shapes == {"both": ((False, True), False), "whole": ((True,), True), "plain": ((False,), True)}


def test_observers_are_chosen_by_id() -> None:
    app = App()
    for name in ("a", "b"):
        app.observer(name)(takes_transition)
    assert [one.observer_id for one in app.observers.chosen(["b"])] == ["b"]
    assert [one.observer_id for one in app.observers.chosen([])] == ["a", "b"]
    with pytest.raises(UnknownObserver, match=r"no observer 'c'\. There are: a, b"):
        app.observers.chosen(["a", "c"])
