"""`tidelog history`: the life of a job, from Postgres or from the log itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidelog.cli.console import console, print_json, print_table, say
from tidelog.cli.exits import Refused
from tidelog.cli.freshness import catch_up
from tidelog.cli.job import no_such_job
from tidelog.cli.options import JobIdArgument, JsonOption
from tidelog.cli.session import open_log, open_projection, read_settings
from tidelog.cli.showing import cut, shown_time

if TYPE_CHECKING:
    from tidelog.inspection.job_log import JobLog
    from tidelog.settings import Settings
    from tidelog_events.identity import JobId
    from tidelog_events.jsontext import Json
    from tidelog_projections.queries import CancelRequest, HistoryStep

_COLUMNS: Final = ("#", "at", "what", "state", "attempt", "by", "detail")
_NUMBERS: Final = ("#", "attempt")


async def history(
    job_id: JobIdArgument,
    from_log: Annotated[
        bool,
        typer.Option(
            "--from-log",
            help="Every fact that the log holds, renewals and earlier lives too. Needs no Postgres.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the steps of a job's life: the newest 64, or all that the log holds."""
    from tidelog.client.checking import check_job_id

    settings = read_settings()
    known = check_job_id(job_id)
    if from_log:
        await _from_log(settings, known, as_json=as_json)
    else:
        await _from_postgres(settings, known, as_json=as_json)


async def _from_postgres(settings: Settings, job_id: JobId, *, as_json: bool) -> None:
    from tidelog_events.identity import queue_of

    async with open_projection(settings) as projection:
        await catch_up(settings, projection, queue_of(job_id))
        steps = await projection.history(job_id)
        if not steps and await projection.job(job_id) is None:
            raise no_such_job(job_id)
        requests = await projection.cancel_requests(job_id)
    if not steps:
        say(f"tidelog: no steps of {job_id} are kept (TIDELOG_HISTORY={settings.history}).")
    written = [_written(step) for step in steps]
    asked = [_asked(request) for request in requests]
    if as_json:
        print_json({"job_id": job_id, "transitions": written, "cancel_requests": asked})
        return
    shown = [(step.sequence, _row(fact)) for step, fact in zip(steps, written, strict=True)]
    shown += [
        (request.sequence, _row({"type": "cancel_requested", **fact}))
        for request, fact in zip(requests, asked, strict=True)
    ]
    print_table(_COLUMNS, [row for _, row in sorted(shown)], right=_NUMBERS)


async def _from_log(settings: Settings, job_id: JobId, *, as_json: bool) -> None:
    import orjson

    from tidelog.inspection.job_log import read_job_log

    async with open_log(settings) as log:
        with console(stderr=True).status(f"reading the log of {job_id}"):
            found = await read_job_log(log, settings.topics, job_id)
    _tell_what_is_missing(found)
    if not found.facts:
        raise Refused("NotFound", f"The log tells nothing of a job {job_id!r}.")
    if as_json:
        print_json({"job_id": job_id, "transitions": [orjson.Fragment(fact.text) for fact in found.facts]})
        return
    lives = found.facts[-1].life
    for life in range(1, lives + 1):
        if lives > 1:
            say(f"life {life} of {lives}:")
        rows = [_row(fact.fields) for fact in found.facts if fact.life == life]
        print_table(_COLUMNS, rows, right=_NUMBERS)


def _tell_what_is_missing(found: JobLog) -> None:
    if found.is_cut:
        say(f"tidelog: the log has forgotten its oldest events, among them perhaps some of {found.job_id}.")
    if found.unreadable:
        say(f"tidelog: {found.unreadable} records of {found.job_id} cannot be read and are left out.")


def _row(fact: Mapping[str, Json]) -> tuple[str, ...]:
    """A fact of contract section 4, of a type that may not be known here."""
    return (
        _text(fact, "ordinal"),
        _text(fact, "at"),
        _text(fact, "type"),
        _text(fact, "state"),
        _text(fact, "attempt"),
        _text(fact, "worker_id") or _text(fact, "actor"),
        cut(_detail(fact)),
    )


def _detail(fact: Mapping[str, Json]) -> str:
    """What is most worth knowing of a fact."""
    if why := _text(fact, "error") or _text(fact, "terminal_cause"):
        return why
    if parent := _text(fact, "parent_id"):
        return f"{parent} ended {_text(fact, 'parent_state')}, {_text(fact, 'parents_remaining')} to wait for"
    if until := _text(fact, "lease_expiry"):
        return f"lease until {until}"
    parents = fact.get("parents")
    if isinstance(parents, list) and parents:
        return f"waits for {', '.join(map(str, parents))}"
    return f"due {due}" if (due := _text(fact, "due_time")) else ""


def _text(fact: Mapping[str, Json], name: str) -> str:
    value = fact.get(name)
    return "" if value is None else str(value)


def _written(step: HistoryStep) -> dict[str, Json]:
    from tidelog_events.wire import to_wire

    written: dict[str, Json] = to_wire(step)
    for name in ("at", "due_time", "lease_expiry"):
        written[name] = shown_time(getattr(step, name)) or None
    return written


def _asked(request: CancelRequest) -> dict[str, Json]:
    return {
        "at": shown_time(request.at),
        "actor": request.actor,
        "partition": request.partition,
        "sequence": request.sequence,
    }
