"""Which handler runs a job: from the wire name of a grant to a declared definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.handler.signature import DefinitionError, PayloadUndecodable
from tidelog_events.errors import TidelogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidelog.handler.jobs import AnyJobDefinition
    from tidelog_events.identity import QueueName
    from tidelog_events.replies import Grant


class Unroutable(TidelogError):
    """A job cannot be run by this code. The message is the terminal cause (contract section 3)."""


class JobRegistry:
    """The jobs that an application declares, by wire name."""

    def __init__(self, definitions: Iterable[AnyJobDefinition] = ()) -> None:
        self._definitions: dict[str, AnyJobDefinition] = {}
        for definition in definitions:
            self.add(definition)

    def __iter__(self) -> Iterator[AnyJobDefinition]:
        return iter(self._definitions.values())

    def __len__(self) -> int:
        return len(self._definitions)

    @property
    def queues(self) -> tuple[QueueName, ...]:
        """The queues that the declarations name, in order of first appearance."""
        return tuple(dict.fromkeys(definition.queue for definition in self))

    def add(self, definition: AnyJobDefinition) -> None:
        """Take a definition.

        Raises:
            DefinitionError: the wire name has a handler already.
        """
        present = self._definitions.setdefault(definition.wire_name, definition)
        if present is not definition:
            raise DefinitionError(
                f"The wire name {definition.wire_name!r} has two handlers, {_where(present)} and "
                f"{_where(definition)}. Give one of them another name."
            )

    def find(self, wire_name: str) -> AnyJobDefinition:
        """The definition for a wire name. Raises `Unroutable` when there is none."""
        definition = self._definitions.get(wire_name)
        if definition is None:
            raise Unroutable(f"no handler registered for wire name '{wire_name}'")
        return definition


def decode(definition: AnyJobDefinition, grant: Grant) -> dict[str, object]:
    """The arguments of a granted job, by name. Runs the validators of the handler's own types.

    Raises:
        Unroutable: the payload does not fit the handler (any more).
    """
    try:
        return definition.signature.decode_arguments(grant.payload)
    except PayloadUndecodable as error:
        raise Unroutable(f"payload for wire name '{grant.wire_name}' no longer decodes: {error}") from None


def _where(definition: AnyJobDefinition) -> str:
    function = definition.function
    module = getattr(function, "__module__", "?")
    return f"{module}.{getattr(function, '__qualname__', repr(function))}"
