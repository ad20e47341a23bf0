"""One demonstration, from the survey of the folder to the list of checks."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tidelog.cli.console import print_line
from tidelog.cli.signals import stop_on_signals
from tidelog.demo import findings
from tidelog.demo.checks import Check, check_all
from tidelog.demo.clock import stop_clock
from tidelog.demo.expect import Expected, Hasher, expect, hash_path
from tidelog.demo.plan import OPERATOR, Plan, make_plan
from tidelog.demo.progress import until_all_have_ended
from tidelog.demo.stage import Stage, set_up, settings_of, variables_of
from tidelog.demo.tables import show_tables
from tidelog.demo.tree import Survey, survey
from tidelog_events.errors import TidelogError
from tidelog_events.identity import JobId

_ENQUEUE_SECONDS: Final = 30.0
_BATCH: Final = 1_000


class Interrupted(TidelogError):
    """Somebody asked for the end before the demonstration had come to it."""


async def run_demo(folder: Path, *, keep: bool = False, hasher: Hasher = hash_path) -> bool:
    """Run the demonstration on a folder; whether every check held.

    Nothing is left running, whatever happens, and no file but those that `keep` asks for.

    Args:
        folder: what to work on; it is only read.
        keep: whether log and Postgres are kept, to look at them with the other commands.
        hasher: how the files are hashed anew for the checks.

    Raises:
        NotAFolder: there is nothing to work on.
        Interrupted: a signal came.
        TidelogError: something could not be started, or did not go on.
    """
    root = await asyncio.to_thread(folder.resolve)
    async with stop_on_signals() as stop, _home(keep=keep) as home:
        whole = asyncio.ensure_future(_run(root, home, keep=keep, hasher=hasher))
        asked = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([whole, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            await _end(whole)
        if whole.cancelled():
            raise Interrupted("The demonstration was interrupted; nothing of it runs any more.")
        return whole.result()


async def _end(task: asyncio.Future[bool]) -> None:
    """Cancel a task and wait until it has cleaned up; hurry it along when this is cancelled meanwhile."""
    task.cancel()
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise


@asynccontextmanager
async def _home(*, keep: bool) -> AsyncIterator[Path]:
    home = await asyncio.to_thread(_make_home)
    try:
        yield home
    finally:
        if not keep:
            await asyncio.to_thread(shutil.rmtree, home)


def _make_home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="tidelog-demo-"))
    if os.geteuid() == 0:
        home.chmod(0o755)  # Postgres does not run as root, and its account has to get at its data
    return home


async def _run(root: Path, home: Path, *, keep: bool, hasher: Hasher) -> bool:
    found = await asyncio.to_thread(survey, root)
    plan = make_plan(root, found)
    _say_what_was_found(root, found, plan)
    began = time.monotonic()
    async with set_up(home) as stage:
        roles = ", ".join(f"{role.name} (process {role.pid})" for role in stage.roles)
        print_line(f"Running: an SQLite log, Postgres, {roles}.")
        ticks = await _unless_a_role_ends(stage, plan)
        print_line(f"All jobs have ended, {time.monotonic() - began:.1f} s after the start of it all.")
        await show_tables(stage.projection)
        expected = await asyncio.to_thread(expect, plan, hasher)
        checks = check_all(plan, ticks, expected, await findings.all_jobs(stage.projection))
    _say_what_held(checks, expected)
    _say_how_to_go_on(home, plan, keep=keep)
    return all(check.holds for check in checks)


async def _unless_a_role_ends(stage: Stage, plan: Plan) -> list[JobId]:
    """Run all jobs, and return those of the schedule; when a role ends meanwhile, do not wait for them."""
    work = asyncio.ensure_future(_work(stage, plan))
    watch = asyncio.ensure_future(stage.watch())
    try:
        await asyncio.wait([work, watch], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (work, watch):
            if not task.done():
                task.cancel()
        await asyncio.wait([work, watch])
    if work.cancelled():
        await watch
    return await work


async def _work(stage: Stage, plan: Plan) -> list[JobId]:
    jobs = plan.jobs
    for start in range(0, len(jobs), _BATCH):
        await stage.client.enqueue_many(jobs[start : start + _BATCH], timeout=_ENQUEUE_SECONDS)
    await stage.client.cancel(plan.troubles.far_away.job_id, actor=OPERATOR, timeout=_ENQUEUE_SECONDS)
    ticks = await stop_clock(stage)
    await until_all_have_ended(stage, len(jobs) + len(ticks))
    return ticks


def _say_what_was_found(root: Path, found: Survey, plan: Plan) -> None:
    print_line(
        f"{root}: {found.files:,} files, {found.size:,} bytes, {len(found.folders):,} folders. "
        f"That makes {len(plan.jobs):,} jobs."
    )
    if found.left_out:
        left_out = ", ".join(f"{what} ({count})" for what, count in sorted(found.left_out.items()))
        print_line(f"Left out: {left_out}.")


def _say_what_held(checks: Sequence[Check], expected: Expected) -> None:
    print_line("")
    print_line("Checked, with the files read once more:")
    for check in checks:
        instead = "" if check.holds else f" - {check.instead}"
        print_line(f"  {'✓' if check.holds else '✗'} {check.sentence}{instead}")
    if expected.changed:
        print_line(
            f"  ({len(expected.changed)} files changed meanwhile, such as {expected.changed[0].name}: "
            "nothing is said of these and of the folders that they are in.)"
        )
    held = sum(check.holds for check in checks)
    print_line(f"{held} of {len(checks)} checks held.")


def _say_how_to_go_on(home: Path, plan: Plan, *, keep: bool) -> None:
    print_line("")
    if not keep:
        print_line(
            "To look further, run `tidelog demo --keep`: it keeps log and Postgres for other commands."
        )
        return
    print_line(f"Log and Postgres are kept in {home}; delete that folder when you are done. To look further:")
    for name, value in variables_of(settings_of(home)).items():
        print_line(f"  export {name}={value}")
    for command in (
        "tidelog queues",
        "tidelog jobs --state DeadLettered",
        "tidelog jobs --tag kind=python --limit 5",
        f"tidelog job {plan.folders[-1].job.job_id}",
        f"tidelog history {plan.troubles.flaky.job_id}",
    ):
        print_line(f"  {command}")
