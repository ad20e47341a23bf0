"""The readings as a table for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

import orjson
from rich.table import Table
from rich.text import Text

from bench.figures import Figure, Reading
from bench.machine import Machine


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run.

    Attributes:
        began: by the wall clock, with a time zone.
        jobs: how many each measure ran.
        concurrency: handlers at once, of the worker.
        logs: the addresses that were measured, in the order of the columns.
    """

    machine: Machine
    began: datetime
    jobs: int
    concurrency: int
    logs: Sequence[str]
    readings: Sequence[Reading]


def to_json(report: Report) -> bytes:
    """The run as a JSON object, indented."""
    written = {
        "began": report.began,
        "jobs": report.jobs,
        "concurrency": report.concurrency,
        "machine": asdict(report.machine),
        "readings": [
            {
                "measure": reading.measure,
                "figure": reading.figure.label,
                "unit": reading.figure.unit,
                "log": reading.log,
                "value": reading.value,
                "values": reading.values,
                "floor": None if (floor := reading.figure.floor_on(reading.log)) is None else floor.text,
                "floor_kept": reading.is_kept,
            }
            for reading in report.readings
        ],
    }
    return orjson.dumps(written, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def to_table(report: Report) -> Table:
    """A row for each figure and a column for each log; what needs no log stands in all of them."""
    table = Table()
    table.add_column("figure")
    table.add_column("unit")
    table.add_column("floor", justify="right")
    for log in report.logs:
        table.add_column(log, justify="right")
    for figure in dict.fromkeys(reading.figure for reading in report.readings):
        table.add_row(
            figure.label,
            figure.unit,
            _floors(report, figure),
            *(_cell(report, figure, log) for log in report.logs),
        )
    return table


def to_facts(report: Report) -> str:
    """What to read the table with, a few lines."""
    machine = report.machine
    memory = "" if machine.memory_mib is None else f", {machine.memory_mib:,} MiB"
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    revision = machine.revision or "unknown"
    return "\n".join(
        [
            f"{report.jobs:,} jobs, {report.concurrency} handlers at once",
            f"{report.began:%Y-%m-%d %H:%M} UTC, revision {revision}",
            f"{machine.cpu}, {machine.cores} cores{memory}; {machine.kernel}",
            f"{machine.python}; {packages}",
            f"load before the start: {', '.join(f'{load:.2f}' for load in machine.load)}",
        ]
    )


def _floors(report: Report, figure: Figure) -> str:
    """The floors on the logs of this run, each once."""
    floors = [figure.floor_on(log) for log in report.logs]
    return " / ".join(dict.fromkeys(floor.text for floor in floors if floor is not None))


def _cell(report: Report, figure: Figure, log: str) -> Text:
    for reading in report.readings:
        if reading.figure == figure and reading.log in {log, None}:
            style = {None: "", True: "green", False: "bold red"}[reading.is_kept]
            return Text(_range(reading), style)
    return Text("")


def _range(reading: Reading) -> str:
    value = _number(reading.value)
    if len(reading.values) == 1:
        return value
    return f"{value} ({_number(min(reading.values))} to {_number(max(reading.values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
