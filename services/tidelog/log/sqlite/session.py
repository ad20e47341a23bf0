"""What all that works on one connection to the log shares."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tidelog.log.sqlite.file import Clock, snapshot
from tidelog.log.sqlite.topics import Topics
from tidelog.log.sqlite.watch import Watch
from tidelog.log.sqlite.write_thread import WriteThread

_T = TypeVar("_T")


class Session:
    """One process's connection: it reads here, on the event loop, and writes on the thread.

    Args:
        path: the file.
        reading: the connection to read on, and never to write.
        clock: the wall clock, in seconds; what is written down goes by it.
    """

    def __init__(self, path: Path, reading: sqlite3.Connection, clock: Clock) -> None:
        self.path = path
        self.reading = reading
        self.clock = clock
        self.topics = Topics(reading, path)
        self.watch = Watch(path, reading)
        self.thread = WriteThread(path, self.watch.announce)

    def snapshot(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """Read, all of it as of one instant. Raises `LogError` when SQLite cannot."""
        return snapshot(self.reading, self.path, action)

    async def close(self) -> None:
        await self.thread.close()
        self.watch.close()
        self.reading.close()
