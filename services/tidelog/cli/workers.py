"""`tidelog workers`: who was heard of, and who holds how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.cli.console import print_json, print_table
from tidelog.cli.freshness import catch_up
from tidelog.cli.options import JsonOption
from tidelog.cli.session import open_projection, read_settings

if TYPE_CHECKING:
    from tidelog_projections.workers import WorkerRow


async def workers(as_json: JsonOption = False) -> None:
    """List the workers that were granted jobs within the last week, the one heard of last first."""
    from tidelog.clock import wall_clock
    from tidelog.words import ago

    settings = read_settings()
    async with open_projection(settings) as projection:
        await catch_up(settings, projection, None)
        found = await projection.workers()
    if as_json:
        print_json({"workers": [_written(worker) for worker in found]})
        return
    numbers = ("leases", "succeeded", "failed", "expired")
    now = wall_clock()
    print_table(
        ("worker", "last seen", *numbers),
        [
            (worker.worker_id, ago(worker.last_seen, now), *(str(getattr(worker, name)) for name in numbers))
            for worker in found
        ],
        right=numbers,
    )


def _written(worker: WorkerRow) -> dict[str, object]:
    from tidelog_events.instants import format_instant

    return {
        "worker_id": worker.worker_id,
        "first_seen": format_instant(worker.first_seen),
        "last_seen": format_instant(worker.last_seen),
        "leases": worker.leases,
        "succeeded": worker.succeeded,
        "failed": worker.failed,
        "expired": worker.expired,
    }
