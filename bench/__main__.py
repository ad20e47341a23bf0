"""`python -m bench`: take the measures, print the table, and write the JSON."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from tests.providers.kafka import prepare, running_kafka
from tests.providers.kafka_jars import NoBroker

from bench.figures import Figure, Reading
from bench.installation import EMBEDDED, KAFKA
from bench.machine import look
from bench.measures import MEASURES, Load, OfTheRules
from bench.report import Report, to_facts, to_json, to_table
from tidelog_events.errors import TidelogError

Name = StrEnum("Name", {name: name for name in MEASURES})  # type: ignore[misc]  # the names are data

_console = Console()
_asides = Console(stderr=True)


def bench(
    jobs: Annotated[int, typer.Option(min=1, help="How many jobs each measure runs.")] = 20_000,
    concurrency: Annotated[int, typer.Option(min=1, help="Handlers at once, of the one worker.")] = 500,
    only: Annotated[list[Name] | None, typer.Option(help="Only this measure; may be repeated.")] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            help=f"The address of a log, '{EMBEDDED}', or '{KAFKA}' for a broker as tests start it; repeat "
            "it to compare. Topics stay behind."
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, help="How often each measure is taken; the median counts.")
    ] = 1,
    json: Annotated[Path | None, typer.Option(help="Write the readings to this file, too.")] = None,
) -> None:
    """Measure Tidelog on this machine."""
    names = list(dict.fromkeys(map(str, only or MEASURES)))
    try:
        with _addresses(log or [EMBEDDED]) as logs:
            report = asyncio.run(_take_all(names, logs, Load(jobs, concurrency), repeat))
    except (TidelogError, NoBroker) as error:
        _asides.print(f"No figures: {error}", style="red", markup=False)
        raise typer.Exit(1) from None
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    _console.print(to_table(report))
    _console.print(to_facts(report), highlight=False, markup=False, soft_wrap=True)
    if json is not None:
        json.write_bytes(to_json(report))
        _asides.print(f"Written to {json}", markup=False)


@contextmanager
def _addresses(logs: list[str]) -> Iterator[list[str]]:
    """The logs by their addresses; a broker that is asked for stands for the length of the block."""
    if KAFKA not in logs:
        yield logs
        return
    with TemporaryDirectory(prefix="tidelog-bench-") as folder:
        prepare()
        with running_kafka(Path(folder)) as broker:
            yield [f"kafka://{broker.address}" if log == KAFKA else log for log in logs]


async def _take_all(names: list[str], logs: list[str], load: Load, repeat: int) -> Report:
    this = asyncio.current_task()
    if this is not None:  # a plain SIGTERM would leave the roles running
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    machine, began = look(), datetime.now(UTC)
    readings: list[Reading] = []
    for name in names:
        measure = MEASURES[name]
        if isinstance(measure, OfTheRules):
            with _asides.status(f"{name}: {measure.what}"):
                readings += _readings(name, None, [measure.take(load.jobs) for _ in range(repeat)])
            continue
        for log in logs:
            with _asides.status(f"{name} on {log}: {measure.what}"):
                taken = [await measure.run(log, load) for _ in range(repeat)]
                readings += _readings(name, log, taken)
    return Report(machine, began, load.jobs, load.concurrency, logs, readings)


def _readings(name: str, log: str | None, taken: list[Mapping[Figure, float]]) -> list[Reading]:
    return [Reading(name, figure, log, tuple(values[figure] for values in taken)) for figure in taken[0]]


if __name__ == "__main__":
    typer.run(bench)
