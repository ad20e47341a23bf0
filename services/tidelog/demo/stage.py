"""The roles of the demonstration: real processes, on a log and a Postgres in one folder."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidelog.cli.exits import Unreachable
from tidelog.cli.processes import RoleProcess
from tidelog.client.client import Client
from tidelog.log.address import open_log
from tidelog.log.port import Log
from tidelog.log.topics import Topics
from tidelog.settings import PREFIX, Settings
from tidelog_projections.projection import Projection

PARTITIONS: Final = 3
"""Folders wait for files, which are jobs of another queue: mostly of another partition, too."""
_WORKER: Final = ("worker", "tidelog.demo.jobs:app", "--concurrency", "8", "--grace-seconds", "5")
_END_SECONDS: Final = 10.0
_TAIL_LINES: Final = 5
_JOIN_SECONDS: Final = 15.0
_JOIN_PAUSE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Stage:
    """A running installation."""

    client: Client
    projection: Projection
    roles: list[RoleProcess]
    home: Path

    async def watch(self) -> None:
        """Return never, unless a role ends by itself.

        Raises:
            Unreachable: one did; what it said last is in the message.
        """
        ended = {asyncio.ensure_future(role.wait()): role for role in self.roles}
        try:
            done, _ = await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ended:
                task.cancel()
        role = ended[done.pop()]
        raise Unreachable(
            f"The {role.name} of the demonstration (process {role.pid}) has ended with code "
            f"{role.returncode}. {self._words_of(role)}"
        )

    def last_words(self) -> str:
        """What each role said last, for people who wonder what is wrong."""
        return "\n".join(self._words_of(role) for role in self.roles)

    def _words_of(self, role: RoleProcess) -> str:
        lines = (self.home / f"{role.name}.log").read_text(encoding="utf-8", errors="replace").splitlines()
        said = "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
        return f"The {role.name} said last:\n{said}"


def settings_of(home: Path) -> Settings:
    """The settings of an installation in that folder."""
    return Settings(log=f"sqlite:{home}/log.db", postgres=f"embedded:{home}/postgres", partitions=PARTITIONS)


def variables_of(settings: Settings) -> dict[str, str]:
    """The same as environment variables."""
    return {
        f"{PREFIX}LOG": settings.log,
        f"{PREFIX}POSTGRES": settings.postgres,
        f"{PREFIX}PARTITIONS": str(settings.partitions),
    }


@asynccontextmanager
async def set_up(home: Path) -> AsyncIterator[Stage]:
    """Start log, Postgres and the three roles in that folder; all of them are ended with the block."""
    settings = settings_of(home)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(await open_log(settings.log))
        await log.create_topics(settings.topics.specs(settings.partitions))
        projection = await stack.enter_async_context(
            await Projection.connect(settings.postgres, history=settings.history)
        )
        environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        environment |= variables_of(settings)
        roles: list[RoleProcess] = []
        # The worker ends first: its outcomes are still to be decided, and decisions to be projected.
        for arguments in (("projector",), ("engine",), _WORKER):
            role = await _start(arguments, environment, home)
            stack.push_async_callback(_end, role)
            roles.append(role)
        client = await stack.enter_async_context(Client.open(log, settings.topics))
        stage = Stage(client, projection, roles, home)
        await _wait_for_members(log, settings.topics)
        yield stage


async def _wait_for_members(log: Log, topics: Topics) -> None:
    """Until an engine and a projector have joined their groups, or for a bound.

    Then the projector uses the embedded Postgres too: should this process be killed from now on, the last of
    its users is one that is still there to stop it.
    """
    wanted = {topics.engine_group, topics.projector_group}
    deadline = time.monotonic() + _JOIN_SECONDS
    while time.monotonic() < deadline:
        joined = {group.name for group in await log.groups(topics.prefix) if group.members}
        if wanted <= joined:
            return
        await asyncio.sleep(_JOIN_PAUSE_SECONDS)


async def _start(arguments: tuple[str, ...], environment: dict[str, str], home: Path) -> RoleProcess:
    with (home / f"{arguments[0]}.log").open("wb") as said:
        return await RoleProcess.start(arguments, environment=environment, directory=home, stderr=said)


async def _end(role: RoleProcess) -> None:
    role.ask_to_stop()
    await role.end(timeout=_END_SECONDS)
