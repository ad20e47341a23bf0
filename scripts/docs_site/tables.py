"""The tables of Postgres, column by column, from the SQL that makes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

_SCHEMA: Final = Path(__file__).parents[2] / "projections" / "tidelog_projections" / "schema"
_INTERNAL: Final = {"worker_shares"}
"""Tables that no reader needs: a view shows them."""

_RELATION: Final = re.compile(
    r"(?P<comment>(?:^--[^\n]*\n)+)^CREATE (?P<kind>TABLE|VIEW) (?P<name>\w+) (?P<body>.*?);\n",
    re.MULTILINE | re.DOTALL,
)
_WIDENED: Final = re.compile(r"^ALTER TABLE (\w+) ALTER COLUMN (\w+) TYPE (\w+);$", re.MULTILINE)
_ADDED: Final = re.compile(
    r"^ALTER TABLE (\w+) ADD COLUMN (\w+) (\w+);(?: -- ([^\n]*))?$",  # one that is never null needs more
    re.MULTILINE,
)
_KEY: Final = re.compile(r"PRIMARY KEY \((?P<columns>[^)]*)\)")
_COLUMN: Final = re.compile(
    r"^    (?P<name>[a-z]\w*) +(?P<type>[a-z]\w*(?: precision)?(?:\[\])?)"
    r"(?P<more>(?:[^-]|-(?!- ))*)(?:-- (?P<note>.*))?$"
)
_OF_VIEW: Final = re.compile(r"^    (?:(?P<plain>[a-z]\w*)|.* AS (?P<named>\w+)),?$")
_INTRODUCTION: Final = """\
# Tables

All that stands in the schema `tidelog`, from the SQL that makes it. It is stable for reading: names and
meanings stay ([contract](../contract.md#10-postgres)), columns may be added. Write nothing there.

A column with a dot is never null.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, as it is described."""

    name: str
    type: str
    is_given: bool
    note: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a view: what is said of it, its columns, and what makes a row of it unique."""

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]


def relations() -> dict[str, Relation]:
    """The tables and views for readers, in the order in which they are made."""
    found: dict[str, Relation] = {}
    for file in sorted(_SCHEMA.glob("*.sql")):
        text = file.read_text(encoding="utf-8")
        for match in _RELATION.finditer(text):
            relation = _relation(match, found)
            found[relation.name] = relation
        for table, column, wider in _WIDENED.findall(text):
            found[table] = _widened(found[table], column, wider)
        for table, column, kind, note in _ADDED.findall(text):
            added = Column(column, kind, is_given=False, note=note)
            found[table] = replace(found[table], columns=(*found[table].columns, added))
    return {name: relation for name, relation in found.items() if name not in _INTERNAL}


def tables_page() -> str:
    """A section for each of them."""
    return "\n".join([_INTRODUCTION, *map(_section, relations().values())])


def _relation(match: re.Match[str], known: Mapping[str, Relation]) -> Relation:
    body = match["body"]
    comment = " ".join(line.removeprefix("--").strip() for line in match["comment"].splitlines())
    if match["kind"] == "VIEW":
        selected = (_OF_VIEW.match(line) for line in body.partition("\nFROM ")[0].splitlines())
        names = [column["plain"] or column["named"] for column in selected if column is not None]
        shares = {column.name: column for column in known[body.rpartition("FROM ")[2].split()[0]].columns}
        return Relation(match["name"], comment, tuple(shares[name] for name in names), (names[0],))
    columns: list[Column] = []
    for line in body.splitlines():
        if line.startswith("    LIKE "):
            columns += known[line.removeprefix("    LIKE ").rstrip(",")].columns
        elif (column := _COLUMN.match(line)) is not None:
            given = "NOT NULL" in column["more"] or "PRIMARY KEY" in column["more"]
            columns.append(Column(column["name"], column["type"], given, column["note"] or ""))
    key = _KEY.search(body)
    names = [columns[0].name] if key is None else key["columns"].split(", ")
    return Relation(match["name"], comment, tuple(columns), tuple(names))


def _widened(relation: Relation, name: str, wider: str) -> Relation:
    columns = (replace(each, type=wider) if each.name == name else each for each in relation.columns)
    return replace(relation, columns=tuple(columns))


def _section(relation: Relation) -> str:
    rows = "\n".join(
        f"| `{column.name}` | {'•' if column.is_given else ''} | {column.type} | {column.note} |"
        for column in relation.columns
    )
    key = ", ".join(f"`{name}`" for name in relation.key)
    return (
        f"## `{relation.name}`\n\n{relation.comment}\n\nA row for each {key}.\n\n"
        f"| column | given | type | |\n|---|---|---|---|\n{rows}\n"
    )
