"""Observers as code declares them (contract section 8)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NewType, TypeAlias, TypeVar, get_type_hints

from tidelog.observer.context import ObserverContext
from tidelog.observer.errors import BadObserver, UnknownObserver
from tidelog.observer.filters import TransitionFilter
from tidelog.observer.start import Start
from tidelog_events.instants import MAX_SECONDS, NotAnInstant, from_datetime
from tidelog_events.retry import DEFAULT_RETRY, RetryPolicy

ObserverId = NewType("ObserverId", str)

Handler: TypeAlias = Callable[..., object]
"""Takes a transition, an `ObserverContext`, or both."""

HandlerT = TypeVar("HandlerT", bound=Handler)

DEFAULT_TIMEOUT: Final = 30.0
_OBSERVER_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class ObserverDefinition:
    """An observer and what its declaration says.

    Attributes:
        observer_id: names its consumer group, its dead letters and its line in `tidelog observers`.
        function: the handler as it was written.
        filter: which transitions it is told of.
        start: where it begins when it has never run.
        timeout: seconds that one try may take.
        retry: how often a delivery is tried, and how long after a failure.
        is_async: whether the handler runs on an event loop; else in a thread.
        takes: what the handler is called with, in order: True for the context, False for the transition.
    """

    observer_id: ObserverId
    function: Handler
    filter: TransitionFilter
    start: Start
    timeout: float
    retry: RetryPolicy
    is_async: bool
    takes: tuple[bool, ...]

    async def call(self, context: ObserverContext) -> None:
        """Call the handler to its end, on the event loop that runs. Raises what it raises."""
        value = self.function(*self._arguments(context))
        if inspect.isawaitable(value):
            await value

    def call_in_thread(self, context: ObserverContext) -> None:
        """Call a handler that is a plain function. Raises what it raises.

        Raises:
            TypeError: it returned a coroutine, which nobody would run: the event would pass for told.
        """
        value = self.function(*self._arguments(context))
        if inspect.iscoroutine(value):
            value.close()
            raise TypeError("a handler that is no `async def` returned a coroutine")

    def _arguments(self, context: ObserverContext) -> Iterator[object]:
        return (context if wanted else context.transition for wanted in self.takes)


class ObserverRegistry:
    """The observers that an application declares, by id."""

    def __init__(self) -> None:
        self._definitions: dict[str, ObserverDefinition] = {}

    def __iter__(self) -> Iterator[ObserverDefinition]:
        return iter(self._definitions.values())

    def __len__(self) -> int:
        return len(self._definitions)

    def add(self, definition: ObserverDefinition) -> None:
        """Take a definition. Raises `BadObserver` when there is another one of the same id."""
        present = self._definitions.setdefault(definition.observer_id, definition)
        if present is not definition:
            raise BadObserver(
                f"There are two observers {definition.observer_id!r}, {_where(present.function)} and "
                f"{_where(definition.function)}. They would share what they see; give one another id."
            )

    def chosen(self, ids: Iterable[str]) -> list[ObserverDefinition]:
        """The observers of these ids, or all of them when there are none. Raises `UnknownObserver`."""
        wanted = list(dict.fromkeys(ids))
        for observer_id in wanted:
            if observer_id not in self._definitions:
                there_are = ", ".join(self._definitions) or "none"
                raise UnknownObserver(
                    f"The application declares no observer {observer_id!r}. There are: {there_are}."
                )
        return [self._definitions[observer_id] for observer_id in wanted] or list(self)


def declare_observer(
    observer_id: str,
    *,
    filter: TransitionFilter,  # noqa: A002  what it is called by whoever declares
    start: Start,
    timeout: float = DEFAULT_TIMEOUT,
    retry: RetryPolicy = DEFAULT_RETRY,
    register: Callable[[ObserverDefinition], None],
) -> Callable[[HandlerT], HandlerT]:
    """The decorator of `App.observer`. The function itself is left as it is.

    Args:
        observer_id: 1 to 100 characters of `A-Z a-z 0-9 . _ -`. Another id is another observer, which begins
            at its `start`.
        register: takes the finished definition, and refuses an id that stands twice.

    Raises:
        BadObserver: here or by the decorator; the message says what to change.
    """
    what = f"observer {observer_id!r}"
    if _OBSERVER_ID.fullmatch(observer_id) is None:
        raise BadObserver(f"{what} cannot be: an id has 1 to 100 characters of A-Z a-z 0-9 . _ -.")
    if not 0 < timeout <= MAX_SECONDS:
        raise BadObserver(f"The timeout of {what} is {timeout} s; it must be more than 0 s.")
    _check_start(what, start)

    def decorate(function: HandlerT) -> HandlerT:
        if _yields(function):
            raise BadObserver(
                f"{_where(function)}, the handler of {what}, yields, so that nothing would run it."
            )
        register(
            ObserverDefinition(
                observer_id=ObserverId(observer_id),
                function=function,
                filter=filter,
                start=start,
                timeout=timeout,
                retry=retry,
                is_async=_is_async(function),
                takes=_takes(function, what),
            )
        )
        return function

    return decorate


def _check_start(what: str, start: object) -> None:
    if start in ("beginning", "now"):
        return
    if not isinstance(start, datetime):
        raise BadObserver(f"The start of {what} is {start!r}; say 'beginning', 'now' or a datetime.")
    try:
        from_datetime(start)
    except NotAnInstant as error:
        raise BadObserver(f"The start of {what}: {error}.") from None


def _is_async(function: Handler) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  an object that is called may have an async one
    )


def _yields(function: Handler) -> bool:
    return any(
        inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one)
        for one in (function, getattr(function, "__call__", None))  # noqa: B004  as above
    )


def _takes(function: Handler, what: str) -> tuple[bool, ...]:
    hints = _hints(function)
    needed = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in _VARIADIC
    ]
    takes = tuple(_is_context(hints.get(parameter.name, parameter.annotation)) for parameter in needed)
    if any(parameter.kind not in _POSITIONAL for parameter in needed) or takes not in _SHAPES:
        raise BadObserver(
            f"{what} must take the transition, a parameter annotated ObserverContext, or both; "
            f"{_where(function)} takes {', '.join(parameter.name for parameter in needed) or 'nothing'}."
        )
    return takes


_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_SHAPES: Final = ((False,), (True,), (True, False), (False, True))


def _hints(function: Handler) -> Mapping[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return {}  # a name that only a type checker sees: the annotation's text has to do


def _is_context(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == ObserverContext.__name__
    return annotation is ObserverContext


def _where(function: Handler) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
