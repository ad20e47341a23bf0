"""Who waits for what, and how a change of the file is noticed: by pokes at once, by polling in any case."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable, Collection
from pathlib import Path

from tidelog.log.sqlite.wake_socket import WakeSocket

POLL_SECONDS = 0.02
"""How often the file is asked for changes by who cannot be poked, or has met a writer that does not poke."""

_POLL_WITH_SOCKET_SECONDS = 0.25
_DISTRUST_SECONDS = 60.0

WatchKey = int
"""What can be watched: a partition by its id, a group by its id below zero."""

_NO_VERSION = -1

_VERSIONS = """
SELECT json_group_object(id, version) FROM (
    SELECT id, next_offset AS version FROM partitions UNION ALL SELECT -id, generation FROM groups
)
"""


class Watch:
    """Calls back when something that is watched may have changed; all but `announce` is for the event loop.

    A change is noticed by a poke (of this connection's own writer, or through the socket), or else by polling
    the file's version, which costs 5 microseconds. A writer may share the file and yet reach no socket (of
    another user, with another folder for temporary files): its first commit that no poke announced makes this
    watch poll faster.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._socket = WakeSocket.bind(path)
        if self._socket is not None:
            self._loop.add_reader(self._socket.fileno(), self._on_poke)
        self._callbacks: dict[WatchKey, list[Callable[[], None]]] = {}
        self._seen: dict[str, int] = {}
        self._suspicious = False
        self._distrust_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._file_version = self._read_file_version()

    def add(self, keys: Collection[WatchKey], callback: Callable[[], None]) -> None:
        """Call back when one of these may have changed since the last look."""
        for key in keys:
            self._callbacks.setdefault(key, []).append(callback)
        if self._timer is None:
            self._file_version = self._read_file_version()
            self._timer = self._loop.call_later(self._poll_seconds(), self._poll)

    def remove(self, keys: Collection[WatchKey], callback: Callable[[], None]) -> None:
        for key in keys:
            self._callbacks[key].remove(callback)
            if not self._callbacks[key]:
                del self._callbacks[key]
        if not self._callbacks and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def announce(self) -> int:
        """Tell everybody, here and elsewhere, that something was committed; from any thread.

        Returns how many other connections there are, as far as sockets tell.
        """
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits here any more
            self._loop.call_soon_threadsafe(self._look)
        own = self._socket  # once: the event loop may be closing it
        return own.poke_others() if own is not None else 0

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _on_poke(self) -> None:
        if self._socket is not None:
            self._socket.drain()
        self._look()

    def _look(self) -> None:
        """Look for what was announced, so that the next poll finds only what was not."""
        self._suspicious = False
        self._file_version = self._read_file_version()
        self._compare()

    def _compare(self) -> None:
        """Call back for everything that is not as it was at the last look."""
        if self._closed or not self._callbacks:
            return
        try:
            (text,) = self._connection.execute(_VERSIONS).fetchone()
        except sqlite3.Error:
            # Whoever watches will look for himself, and meet the error where it can be raised.
            self._seen = {}
            changed = list(self._callbacks)
        else:
            versions: dict[str, int] = json.loads(text)
            changed = [key for key in self._callbacks if versions.get(str(key)) != self._seen.get(str(key))]
            self._seen = versions
        for key in changed:
            for callback in tuple(self._callbacks.get(key, ())):
                callback()

    def _poll(self) -> None:
        if self._suspicious:
            self._suspicious = False
            self._distrust_until = self._loop.time() + _DISTRUST_SECONDS
        version = self._read_file_version()
        if version != self._file_version:
            self._file_version = version
            # Its poke may be on its way. If none comes before the next poll, some writer pokes nobody.
            self._suspicious = True
            self._compare()
        if not self._closed:
            self._timer = self._loop.call_later(self._poll_seconds(), self._poll)

    def _poll_seconds(self) -> float:
        if self._socket is None or self._suspicious or self._loop.time() < self._distrust_until:
            return POLL_SECONDS
        return _POLL_WITH_SOCKET_SECONDS

    def _read_file_version(self) -> int:
        if self._closed:
            return _NO_VERSION
        try:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            return _NO_VERSION  # whoever watches is called, looks for himself, and meets the error
        return int(version)
