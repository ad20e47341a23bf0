"""`tidelog doctor`: is this installation well, and what is to be done if not?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidelog.cli.console import print_json, print_line
from tidelog.cli.exits import ExitCode, WrongUse
from tidelog.cli.options import JsonOption
from tidelog.cli.session import open_log, read_settings, require_postgres

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidelog.doctor.findings import Finding
    from tidelog.settings import Settings
    from tidelog_projections.inspection import Inspection

_PATIENCE_SECONDS: Final = 3.0
"""For which Postgres is tried again: doctor says that it is away, it does not wait for it."""


async def doctor(
    only: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Only these checks: log, postgres, topics, owners, lag, projection, queues, observers, "
            "clock, rejects.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look at an installation from all sides, and say what is wrong and what to do. Nothing is changed.

    Exit codes: 0 all is well, or there are only warnings; 1 something is wrong; 3 a service is not reachable.
    """
    from tidelog.doctor.examine import Installation, examine
    from tidelog.doctor.findings import Health, worst

    settings = read_settings()
    checks = _read_only(only)
    findings = await examine(
        Installation(
            open_log=lambda: open_log(settings),
            inspect=lambda: _inspect(settings),
            topics=settings.topics,
            partitions=settings.partitions,
            replication=None if settings.kafka is None else settings.kafka.replication,
        ),
        checks,
    )
    if as_json:
        print_json({"health": worst(findings).value, "findings": [_written(finding) for finding in findings]})
    else:
        for finding in findings:
            print_line(_line(finding))
    if any(finding.unreachable for finding in findings):
        raise typer.Exit(ExitCode.UNREACHABLE)
    if worst(findings) is Health.ERROR:
        raise typer.Exit(ExitCode.REFUSED)


async def _inspect(settings: Settings) -> Inspection:
    from tidelog_projections.inspection import inspect

    require_postgres(settings)
    return await inspect(settings.postgres, patience=_PATIENCE_SECONDS)


def _read_only(only: str | None) -> Collection[str]:
    from tidelog.doctor.examine import NAMES

    if only is None:
        return NAMES
    asked = [name.strip() for name in only.split(",")]
    for name in asked:
        if name not in NAMES:
            raise WrongUse(f"--only names {name!r}, which is no check. There are: {', '.join(NAMES)}.")
    return asked


def _line(finding: Finding) -> str:
    advice = "" if finding.advice is None else f" -> {finding.advice}"
    return f"{finding.health.value:<8} {finding.check:<11} {finding.message}{advice}"


def _written(finding: Finding) -> dict[str, object]:
    return {
        "check": finding.check,
        "health": finding.health.value,
        "message": finding.message,
        "advice": finding.advice,
        "unreachable": finding.unreachable,
    }
