"""How a commit wakes readers in other processes at once: datagrams to the sockets of who has the file open.

Each connection binds a socket in one folder per log file. A poke says only "look"; what is new stands in the
file. So a poke that is lost costs time, never a record (see `watch`).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import socket
import stat
import tempfile
from pathlib import Path

logger = logging.getLogger(__name__)

_BIND_TRIES = 3


def folder_of(path: Path) -> Path:
    """The folder of the sockets of all who have this file open. Short, for socket paths end at 107 bytes."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"tidelog-{name}"


class WakeSocket:
    """This connection's socket, and the way to everybody else's."""

    def __init__(self, folder: Path, name: str, receiver: socket.socket) -> None:
        self._folder = folder
        self._name = name
        self._receiver = receiver
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)

    @classmethod
    def bind(cls, path: Path) -> WakeSocket | None:
        """Bind a socket for the log at `path`; None when there can be none, so that readers have to poll."""
        folder = folder_of(path)
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)
        try:
            for last in (False,) * (_BIND_TRIES - 1) + (True,):
                _make_private(folder)
                try:
                    receiver.bind(str(folder / name))
                    break
                except FileNotFoundError:
                    # The last one who left has removed the folder in this very instant.
                    if last:
                        raise
        except OSError as error:
            receiver.close()
            logger.info("Readers of the log %s poll it, for want of a socket in %s: %s", path, folder, error)
            return None
        return cls(folder, name, receiver)

    def fileno(self) -> int:
        return self._receiver.fileno()

    def drain(self) -> None:
        """Take all pokes that have come."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._receiver.recv(1)

    def poke_others(self) -> int:
        """Wake everybody else who has the file open; returns how many there are. From any thread."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - on the path of each commit: no objects per entry
        except OSError:
            return 0  # cleared away by somebody: readers find the commit by polling
        others = 0
        for name in names:
            if name != self._name:
                others += self._poke(self._folder / name)
        return others

    def close(self) -> None:
        """Leave, and take the folder along if nobody else is there."""
        self.poke_others()  # clears away what killed processes have left
        self._receiver.close()
        self._sender.close()
        with contextlib.suppress(OSError):
            (self._folder / self._name).unlink(missing_ok=True)
            self._folder.rmdir()  # fails unless this was the last one

    def _poke(self, address: Path) -> bool:
        try:
            self._sender.sendto(b"", str(address))
        except ConnectionRefusedError:
            # Its process was killed. A name is never used again, so that this can hit nobody who lives.
            with contextlib.suppress(OSError):
                address.unlink(missing_ok=True)
            return False
        except BlockingIOError:
            return True  # it has unread pokes enough
        except OSError:
            return False  # it has just left
        return True


def _make_private(folder: Path) -> None:
    """Create the folder for this user alone, or check that it is such a one."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a folder of this user alone")
