"""What is tortured: the roles as processes that somebody starts again, a broker, and a PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from tests.providers.kafka_broker import Broker
from tests.providers.postgres import server_folder
from tests.torture.faults import pass_time

from tidelog.cli.processes import RoleProcess
from tidelog_projections.embedded import EmbeddedPostgres

ROOT: Final = Path(__file__).parents[2]
_AGAIN_SECONDS: Final = 0.5
_START_SECONDS: Final = 10.0
_END_SECONDS: Final = 30.0
_CRASH_SECONDS: Final = 10.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Role:
    """A role that is started again whenever it has ended, as any supervisor would do it.

    Attributes:
        name: of its log file too, which all its processes append to.
        gave_up: the exit codes of processes that ended by themselves.
        last_code: how the last one ended, once the run is over.
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    gave_up: list[int] = field(default_factory=list)
    last_code: int | None = None
    _process: RoleProcess | None = None
    _may_start: asyncio.Event = field(default_factory=asyncio.Event)
    _lives: asyncio.Event = field(default_factory=asyncio.Event)
    _was_killed: bool = False

    @property
    def log_file(self) -> Path:
        """What its processes say."""
        return self.folder / f"{self.name}.log"

    @property
    def tracebacks(self) -> int:
        """How many stand in what its processes said."""
        return self.log_file.read_text(encoding="utf-8", errors="replace").count("Traceback")

    async def keep(self, ending: asyncio.Event) -> None:
        """Keep it running until `ending` is set; then end it in order. A cancellation kills it."""
        self._may_start.set()
        end = asyncio.ensure_future(ending.wait())
        try:
            while not ending.is_set():
                await self._live_once(end)
                if not ending.is_set():
                    await asyncio.wait([end], timeout=_AGAIN_SECONDS)
                    await self._may_start.wait()
        finally:
            end.cancel()

    async def _live_once(self, end: asyncio.Future[Literal[True]]) -> None:
        with self.log_file.open("ab") as log:
            process = await RoleProcess.start(
                self.arguments, environment=self.environment, directory=ROOT, stderr=log
            )
        self._process, self._was_killed = process, False
        self._lives.set()
        ended = asyncio.ensure_future(process.wait())
        either: list[asyncio.Future[int] | asyncio.Future[Literal[True]]] = [ended, end]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                if not self._was_killed:
                    logger.info("%s has ended with code %d", self.name, ended.result())
                    self.gave_up.append(ended.result())
                return
            process.ask_to_stop()
            self.last_code = await process.end(timeout=_END_SECONDS)
        finally:
            self._lives.clear()
            ended.cancel()
            await process.end(timeout=0.0)

    async def kill(self, seconds: float) -> None:
        """kill -9, and so many seconds without it."""
        process = await self._living()
        self._was_killed = True
        self._may_start.clear()
        _signal(process.pid, signal.SIGKILL)
        try:
            await pass_time(seconds)
        finally:
            self._may_start.set()

    async def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so many seconds."""
        process = await self._living()
        _signal(process.pid, signal.SIGSTOP)
        try:
            await pass_time(seconds)
        finally:
            _signal(process.pid, signal.SIGCONT)

    async def _living(self) -> RoleProcess:
        """Its process, which is waited for: between two lives there is nobody to hit."""
        async with asyncio.timeout(_START_SECONDS):
            await self._lives.wait()
        if self._process is None:
            raise RuntimeError(f"{self.name} lives and has no process")
        return self._process


def _signal(pid: int, number: signal.Signals) -> None:
    """To a process, unless it has ended by itself in this very moment."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@asynccontextmanager
async def kept_running(roles: Sequence[Role]) -> AsyncIterator[None]:
    """Keep roles running for the length of the block, then end each in order; kill all if the block fails."""
    ending = asyncio.Event()
    keepers = [asyncio.create_task(role.keep(ending)) for role in roles]
    try:
        yield
        ending.set()
        await asyncio.gather(*keepers)
    finally:
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)


class Kafka:
    """The broker as a target: while it is away, nobody can do anything."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def kill(self, seconds: float) -> None:
        """kill -9, some seconds without a broker, and a start that is waited for."""
        await asyncio.to_thread(self._broker.kill)
        try:
            await pass_time(seconds)
        finally:
            await asyncio.to_thread(self._broker.start)

    async def pause(self, seconds: float) -> None:
        """Connections stay, and nothing is answered."""
        self._broker.pause()
        try:
            await pass_time(seconds)
        finally:
            self._broker.resume()


class Postgres:
    """An embedded PostgreSQL as a target. Its address stays the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._uses = [EmbeddedPostgres.start_blocking(folder)]
        self.dsn = self._uses[0].dsn

    async def kill(self, seconds: float) -> None:
        """End it without a checkpoint, as a crash would; it recovers when it is started again."""
        await asyncio.to_thread(self._crash)
        try:
            await pass_time(seconds)
        finally:
            self._uses.append(await asyncio.to_thread(EmbeddedPostgres.start_blocking, self._folder))

    async def pause(self, seconds: float) -> None:
        """Stop the server and all of its children: connections stay, and nothing is answered."""
        server = self._pid()
        _signal(server, signal.SIGSTOP)  # first, so that it has no more children
        stopped = [*self._children(server), server]
        for pid in stopped:
            _signal(pid, signal.SIGSTOP)
        try:
            await pass_time(seconds)
        finally:
            for pid in stopped:
                _signal(pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it for good."""
        for use in self._uses:
            use.stop_blocking()

    def _pid(self) -> int:
        pid_file = self._folder / "data" / "postmaster.pid"
        return int(pid_file.read_text(encoding="utf-8").partition("\n")[0])

    def _children(self, server: int) -> list[int]:
        return [
            int(pid)
            for pid in Path(f"/proc/{server}/task/{server}/children").read_text(encoding="ascii").split()
        ]

    def _crash(self) -> None:
        # SIGQUIT ends its children too; after a SIGKILL they would hold the shared memory for a while.
        pid = self._pid()
        server = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(server, signal.SIGQUIT)
            if not select.select([server], [], [], _CRASH_SECONDS)[0]:
                raise TimeoutError(f"PostgreSQL (process {pid}) did not end within {_CRASH_SECONDS:g} s")
        finally:
            os.close(server)


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A PostgreSQL of one's own that may be killed."""
    with server_folder() as folder:
        postgres = Postgres(folder)
        try:
            yield postgres
        finally:
            postgres.stop()
