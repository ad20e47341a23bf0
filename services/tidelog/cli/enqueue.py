"""`tidelog enqueue`: a job by its wire name."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tidelog.cli.console import print_json, print_line
from tidelog.cli.exits import WrongUse
from tidelog.cli.options import ActorOption, JsonOption, TimeoutOption
from tidelog.cli.session import open_client, read_settings
from tidelog.cli.values import read_json, read_retry, read_tag, read_time
from tidelog_events.instants import MAX_SECONDS


class Mode(StrEnum):
    """What a job asks of its parents."""

    ON_SUCCESS = "OnSuccess"
    ON_ANY_TERMINAL = "OnAnyTerminal"


async def enqueue(
    wire_name: Annotated[str, typer.Argument(metavar="WIRE_NAME", help="Which handler the job is for.")],
    actor: ActorOption,
    queue: Annotated[str, typer.Option(help="The queue.")] = "default",
    payload: Annotated[str, typer.Option(metavar="JSON", help="Any JSON value.")] = "null",
    delay: Annotated[float | None, typer.Option(help="Seconds from now until the job is due.")] = None,
    due: Annotated[
        str | None, typer.Option(help="When the job is due: a time such as 2026-01-31T09:00:00Z.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Makes it idempotent: with the queue it is the job's id.")
    ] = None,
    parent: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A job to wait for; may be said up to 16 times.")
    ] = None,
    mode: Annotated[Mode, typer.Option(help="What is asked of the parents.")] = Mode.ON_SUCCESS,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="LABEL|KEY=VALUE", help="A tag; may be said up to 32 times.")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(metavar="N", help="How often it is tried, 1 to 1000; 10 by default.")
    ] = None,
    delays: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS,…",
            help="Waits after the 1st, 2nd … failure; the last repeats. By default 2, 4, 8 … up to 300.",
        ),
    ] = None,
    timeout: TimeoutOption = 10.0,
    as_json: JsonOption = False,
) -> None:
    """Enqueue a job, and print its id once an engine has accepted it.

    A job of that key that is there already is no error: its id is printed.
    """
    if delay is not None and due is not None:
        raise WrongUse("--delay and --due exclude each other; give one of them.")
    if delay is not None and not 0 <= delay <= MAX_SECONDS:
        raise WrongUse(f"--delay is {delay:g} s; it must be 0 to {MAX_SECONDS} s.")
    retry = read_retry(max_attempts, delays)
    settings = read_settings()
    value = read_json("--payload", payload)
    due_time = None if due is None else read_time("--due", due)
    async with open_client(settings) as client:
        job_id = await client.enqueue(
            wire_name,
            value,
            queue=queue,
            delay=delay,
            due=due_time,
            key=key,
            parents=parent or (),
            mode=mode.value,
            tags=[read_tag(text) for text in tag or ()],
            retry=retry,
            actor=actor,
            timeout=timeout,
        )
    if as_json:
        print_json({"result": "Ok", "job_id": job_id})
    else:
        print_line(job_id)
