"""Statements over whole batches: rows travel as one array a column, and `unnest` makes rows of them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tidelog_projections.rows import arrays

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidelog_projections.connection import Connection

Columns: TypeAlias = tuple[tuple[str, str], ...]
"""Names and types, in the order of a row's values."""


def unnest(columns: Columns) -> str:
    """The arrays of a statement's arguments as rows named `new`."""
    arguments = ", ".join(f"${number}::{kind}[]" for number, (_, kind) in enumerate(columns, 1))
    return f"unnest({arguments}) AS new ({', '.join(name for name, _ in columns)})"


def insert(table: str, columns: Columns, on_conflict: str) -> str:
    """Insert all rows; `on_conflict` says what becomes of one that is there."""
    names = ", ".join(name for name, _ in columns)
    return f"INSERT INTO {table} ({names}) SELECT {names} FROM {unnest(columns)} ON CONFLICT {on_conflict}"  # noqa: S608  our own names


def replace(table: str, key: str, columns: Columns) -> str:
    """For `on_conflict`: the newer row stays."""
    assignments = ", ".join(f"{name} = excluded.{name}" for name, _ in columns if name != key)
    return f"({key}) DO UPDATE SET {assignments} WHERE {table}.sequence < excluded.sequence"


async def put(connection: Connection, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Execute a statement over rows; without rows there is nothing to do."""
    columns = arrays(rows)
    if columns:
        await connection.execute(statement, *columns)
