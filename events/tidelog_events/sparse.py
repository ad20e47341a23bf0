"""Dataclasses of the language in a shorter form, for what is written again and again: an engine's state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar

from tidelog_events.jsontext import Json
from tidelog_events.wire import WireObject, compiled_writer, field_writers, from_wire

T = TypeVar("T")


class Sparse(Generic[T]):
    """How a class is written where size and time count: without the fields that hold their usual value."""

    def __init__(
        self, cls: type[T], usual: Mapping[str, object], *, left_out: Collection[str] = frozenset()
    ) -> None:
        """Compile it.

        Args:
            cls: a dataclass of the language.
            usual: the values of fields that have no default; a default is a usual value, too. What is written
                once is read with the same values for ever.
            left_out: fields that are never written, and have a default.
        """
        writers = field_writers(cls)
        self._cls = cls
        self._write = _writer(cls, usual, writers, left_out)
        self._usual: WireObject = {
            name: writers[name](value) if value is not None and name in writers else value
            for name, value in usual.items()
        }

    def write(self, of: T) -> WireObject:
        """The object, ready for orjson."""
        return self._write(of)

    def read(self, written: Mapping[str, Json]) -> T:
        """What `write` wrote, or `to_wire`. Raises `Unreadable`."""
        return from_wire(self._cls, {**self._usual, **written})


def _writer(
    cls: type,
    usual: Mapping[str, object],
    writers: Mapping[str, Callable[[Any], Any]],
    left_out: Collection[str],
) -> Callable[[Any], WireObject]:
    namespace: dict[str, Any] = {f"write_{name}": write for name, write in writers.items()}
    entries: list[str] = []
    lines: list[str] = []
    for field in fields(cls):
        name = field.name
        if name in left_out:
            continue
        if name in usual:
            namespace[f"usual_{name}"] = usual[name]
        elif field.default is not MISSING:
            namespace[f"usual_{name}"] = field.default
        elif field.default_factory is not MISSING:
            namespace[f"usual_{name}"] = field.default_factory()
        else:
            entries.append(f"{name!r}: {f'write_{name}(of.{name})' if name in writers else f'of.{name}'}")
            continue
        # Nearly always it is the very same object: to compare two policies would take longer than the rest.
        lines.append(f"    if (value := of.{name}) is not usual_{name} and value != usual_{name}:")
        converted = f"None if value is None else write_{name}(value)" if name in writers else "value"
        lines.append(f"        written[{name!r}] = {converted}")
    head = ["def write(of):", f"    written = {{{', '.join(entries)}}}"]
    return compiled_writer([*head, *lines, "    return written"], namespace)
