"""The conditions of a listing, put together with the arguments that they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog_events.states import STATE_ORDINALS
from tidelog_projections.text import shown

if TYPE_CHECKING:
    from tidelog_projections.paging import JobFilter


class Conditions:
    """What a row must be like, all of it.

    Args:
        filters: whose equalities hold to begin with; what a tag means differs from table to table.
        table: how the statement calls the table with the columns of `jobs`, with its dot.

    Attributes:
        arguments: of the statement, in the order of their numbers.
    """

    def __init__(self, filters: JobFilter, table: str = "") -> None:
        self.arguments: list[object] = []
        self._all: list[str] = []
        if filters.state is not None:
            self.add(f"{table}state_ordinal = {self.argument(STATE_ORDINALS[filters.state])}")
        if filters.queue is not None:
            self.add(f"{table}queue = {self.argument(shown(filters.queue))}")
        if filters.wire_name is not None:
            self.add(f"{table}wire_name = {self.argument(shown(filters.wire_name))}")

    def argument(self, value: object) -> str:
        """One more argument: what stands for it in the statement."""
        self.arguments.append(value)
        return f"${len(self.arguments)}"

    def add(self, condition: str) -> None:
        """One more condition."""
        self._all.append(condition)

    @property
    def where(self) -> str:
        """The clause, with a blank before it; nothing without conditions."""
        return f" WHERE {' AND '.join(self._all)}" if self._all else ""
