"""Looking at queues, and controlling them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.console import print_json, print_table
from tidelog.cli.exits import WrongUse
from tidelog.cli.freshness import catch_up
from tidelog.cli.options import ActorOption, JsonOption, QueueArgument, TimeoutOption
from tidelog.cli.session import open_client, open_projection, read_settings
from tidelog.cli.showing import print_result

if TYPE_CHECKING:
    from tidelog_projections.queries import QueueDepths


async def queues(as_json: JsonOption = False) -> None:
    """List queues with their settings, and how many jobs each holds by state."""
    from tidelog_events.states import JobState

    settings = read_settings()
    async with open_projection(settings) as projection:
        await catch_up(settings, projection, None)
        found = await projection.queues()
    if as_json:
        print_json({"queues": [_written(queue) for queue in found]})
        return
    states = [state.value for state in JobState]
    print_table(
        ("queue", "partition", "paused", "limit", *states),
        [
            (
                queue.settings.queue,
                str(queue.settings.partition),
                f"by {queue.settings.paused_by or 'somebody'}" if queue.settings.paused else "",
                "" if queue.settings.concurrency_limit is None else str(queue.settings.concurrency_limit),
                *(str(queue.depths[state]) for state in JobState),
            )
            for queue in found
        ],
        right=("partition", "limit", *states),
    )


async def pause(
    queue: QueueArgument, actor: ActorOption, timeout: TimeoutOption = 10.0, as_json: JsonOption = False
) -> None:
    """Let no job of a queue start from now on; what runs goes on."""
    async with open_client(read_settings()) as client:
        await client.pause_queue(queue, actor=actor, timeout=timeout)
    print_result("Ok", {"queue": queue}, as_json=as_json)


async def resume(
    queue: QueueArgument, actor: ActorOption, timeout: TimeoutOption = 10.0, as_json: JsonOption = False
) -> None:
    """Let the jobs of a queue start again."""
    async with open_client(read_settings()) as client:
        await client.resume_queue(queue, actor=actor, timeout=timeout)
    print_result("Ok", {"queue": queue}, as_json=as_json)


async def limit(
    queue: QueueArgument,
    most: Annotated[
        str,
        typer.Argument(metavar="N|none", help="How many of its jobs may run at once, or none."),
    ],
    actor: ActorOption,
    timeout: TimeoutOption = 10.0,
    as_json: JsonOption = False,
) -> None:
    """Bound how many jobs of a queue run at once."""
    try:
        number = None if most.lower() == "none" else int(most)
    except ValueError:
        raise WrongUse(f"The limit is {most!r}; it must be a whole number, or none.") from None
    async with open_client(read_settings()) as client:
        await client.set_concurrency_limit(queue, number, actor=actor, timeout=timeout)
    print_result("Ok", {"queue": queue, "limit": number}, as_json=as_json)


def _written(queue: QueueDepths) -> dict[str, object]:
    from tidelog_events.instants import format_instant

    settings = queue.settings
    return {
        "queue": settings.queue,
        "partition": settings.partition,
        "paused": settings.paused,
        "paused_at": None if settings.paused_at is None else format_instant(settings.paused_at),
        "paused_by": settings.paused_by,
        "concurrency_limit": settings.concurrency_limit,
        "updated_at": None if settings.updated_at is None else format_instant(settings.updated_at),
        "depths": {state.value: count for state, count in queue.depths.items()},
    }
