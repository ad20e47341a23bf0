"""The SQLite file: opening it, making it a log, and saying clearly what is wrong with one that is none."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from tidelog.log.port import LogError, LogUnavailable

SCHEMA_VERSION = 2
APPLICATION_ID = 0x54494445
"""The letters TIDE, in the header of the file: how a log is told from any other database."""

OFFSET_BITS = 40
"""`position = partition id << OFFSET_BITS | offset` (see schema.sql)."""

LOCK_RETRY_SECONDS = 0.001
"""How often a lock that another process holds is tried again: a commit takes about a millisecond."""

_OPEN_SECONDS = 10.0
_READ_LOCK_SECONDS = 1.0
_OLDEST_SQLITE = (3, 35, 0)
_PAGES_BETWEEN_CHECKPOINTS = 4_000
_LARGEST_IDLE_WAL_BYTES = 64 * 1024 * 1024
# A batch is inserted by a handful of statements of fixed sizes; all of them stay prepared.
_PREPARED_STATEMENTS = 256

_T = TypeVar("_T")

Clock = Callable[[], float]
"""The wall clock, in seconds since 1970: what is written down goes by it."""


def milliseconds(seconds: float) -> int:
    """A time or a span as the file holds it."""
    return round(seconds * 1000)


class LogFileError(LogError):
    """The file cannot serve as a log; the message says why, and what to do."""


def prepare(name: str | os.PathLike[str]) -> Path:
    """Create the file, its folders and its tables where they are missing, and check what is there.

    Returns the absolute path, so that the log stays the same one when the current folder changes.

    Raises:
        LogFileError: the file cannot be created or written, is no Tidelog log, or is of a newer version.
        LogUnavailable: other processes hold it locked.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        needed = ".".join(map(str, _OLDEST_SQLITE))
        raise LogFileError(
            f"This Python has SQLite {sqlite3.sqlite_version}; the log needs {needed} or newer."
        )
    path = Path(name).absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LogFileError(
            f"The folder of the log {path} cannot be created: {error.strerror or error}."
        ) from error
    if path.is_dir():
        raise LogFileError(f"The log {path} is a folder; name a file in it.")
    try:
        connection = _connect(path, busy_seconds=0)
        try:
            _retry_while_locked(lambda: _prepare(connection, path), path)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise explain(error, path) from error
    return path


def connect_writer(path: Path) -> sqlite3.Connection:
    """A connection that writes, from one thread; it never waits for a lock by itself."""
    connection = _connect(path, busy_seconds=0)
    # FULL: a commit is on the disk when it is acknowledged, so that a power cut loses nothing either.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BETWEEN_CHECKPOINTS}")
    connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_IDLE_WAL_BYTES}")
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads. Readers wait for nobody, but for the repair after a crash."""
    connection = _connect(path, busy_seconds=_READ_LOCK_SECONDS)
    connection.execute("PRAGMA query_only = ON")
    return connection


def snapshot(connection: sqlite3.Connection, path: Path, action: Callable[[sqlite3.Connection], _T]) -> _T:
    """Read on a connection that only reads, so that all of it is of one instant.

    Raises:
        LogError: SQLite could not; what `action` itself raises passes through.
    """
    try:
        connection.execute("BEGIN")
        try:
            return action(connection)
        finally:
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise explain(error, path) from error


def is_locked(error: sqlite3.Error) -> bool:
    """Whether another connection held a lock that was needed: try again."""
    return isinstance(error, sqlite3.OperationalError) and _primary_code(error) in {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    }


def explain(error: sqlite3.Error, path: Path) -> LogError:
    """What an error of SQLite means for the log."""
    code = _primary_code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return LogFileError(f"The log {path} is no SQLite file. It is left untouched; name another file.")
    if code == sqlite3.SQLITE_CORRUPT:
        return LogFileError(
            f"The log {path} is damaged ({error}). It is left untouched; restore a copy of it,"
            " or name another file."
        )
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return LogFileError(
            f"The log {path} cannot be written ({error}). Its file and its folder must be writable for this"
            " user."
        )
    if code == sqlite3.SQLITE_FULL:
        return LogUnavailable(f"The disk of the log {path} is full; nothing was written. Make room for it.")
    return LogUnavailable(f"The log {path} cannot be used now: {error}.")


def _connect(path: Path, *, busy_seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(
        path,
        timeout=busy_seconds,
        isolation_level=None,  # transactions are begun and ended by us, in words
        check_same_thread=False,  # opened on one thread, then used by one other alone
        cached_statements=_PREPARED_STATEMENTS,
    )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    if _belongs_to_something_else(connection):
        raise LogFileError(
            f"The file {path} is a database of something else. It is left untouched; name another file."
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise LogFileError(
                f"The log {path} has schema version {version}, and this Tidelog knows {SCHEMA_VERSION}."
                " A newer Tidelog wrote it: update this one."
            )
        if version == 0:
            for statement in _statements():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        elif version == 1:
            connection.execute("ALTER TABLE group_offsets ADD COLUMN note TEXT")
        if version != SCHEMA_VERSION:
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _belongs_to_something_else(connection: sqlite3.Connection) -> bool:
    # Both questions in one transaction: another process may be making the file a log in between.
    connection.execute("BEGIN")
    try:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    finally:
        connection.execute("COMMIT")
    return bool(application_id != APPLICATION_ID and tables)


def _statements() -> list[str]:
    # One by one, because `executescript` would commit the transaction that keeps two processes apart.
    script = files("tidelog.log.sqlite").joinpath("schema.sql").read_text(encoding="utf-8")
    bare = "\n".join(line.partition("--")[0] for line in script.splitlines())
    return [statement for statement in bare.split(";") if statement.strip()]


def _retry_while_locked(action: Callable[[], _T], path: Path) -> _T:
    deadline = time.monotonic() + _OPEN_SECONDS
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_locked(error):
                raise
            if time.monotonic() > deadline:
                raise LogUnavailable(
                    f"Another process has held the log {path} locked for {_OPEN_SECONDS:.0f} s; try again."
                ) from error
        time.sleep(LOCK_RETRY_SECONDS)


def _primary_code(error: sqlite3.Error) -> int:
    # The lower byte of an extended code is the primary one. Errors of the module itself carry none.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
