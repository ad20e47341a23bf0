"""The thread that writes: what has queued up goes into one transaction, so that all of it shares one fsync.

Each job is atomic by itself, in a savepoint of its own: one that is refused does not disturb its neighbours.
A job is answered only after the commit.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

from tidelog.log.port import LogError, LogUnavailable, OutcomeUnknown
from tidelog.log.sqlite.file import LOCK_RETRY_SECONDS, connect_writer, explain, is_locked

logger = logging.getLogger(__name__)

_LARGEST_GROUP = 20_000
"""So much weight (about: records) goes into one commit at most: others wait for the lock meanwhile."""

_CLOSE_SECONDS = 5.0
_GIVE_UP_SECONDS = 2.0
_RECURRING_SECONDS = 1.0
_IDLE_SECONDS = 60.0

# A thread that commits without a pause would win the lock over and over against processes that can only try
# now and then. So, when there are others, it leaves a gap in which each of them tries at least once.
_BUSY_SECONDS = 0.02
_GAP_SECONDS = 1.5 * LOCK_RETRY_SECONDS

# The file or the disk is to blame; the other errors of SQLite are about what one job asked for.
_FATAL = {sqlite3.OperationalError, sqlite3.DatabaseError}

_T = TypeVar("_T")
Work = Callable[[sqlite3.Connection], _T]


class _State(Enum):
    QUEUED = "queued"
    BEGUN = "begun"
    WITHDRAWN = "withdrawn"


class _Job(Generic[_T]):
    """Work for one savepoint, and the future of who waits for it (None: nobody does)."""

    def __init__(
        self, work: Work[_T], weight: int, timeout: float, future: asyncio.Future[_T] | None
    ) -> None:
        self.work = work
        self.weight = weight
        self.timeout = timeout
        self.deadline = time.monotonic() + timeout
        self.future = future
        self.result: _T | None = None
        self.error: BaseException | None = None
        self._state = _State.QUEUED
        self._lock = threading.Lock()

    def begin(self) -> bool:
        """Claim the job for a transaction that has begun; False if it was withdrawn in the meantime."""
        with self._lock:
            if self._state is _State.QUEUED:
                self._state = _State.BEGUN
            return self._state is _State.BEGUN

    def withdraw(self) -> bool:
        """Take the job back; False if its transaction has begun, so that its outcome is open."""
        with self._lock:
            if self._state is _State.QUEUED:
                self._state = _State.WITHDRAWN
            return self._state is _State.WITHDRAWN

    @property
    def withdrawn(self) -> bool:
        return self._state is _State.WITHDRAWN

    def settle(self) -> None:
        """Tell who waits; on the event loop."""
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # set by the work, which returned a _T


def _settle(jobs: list[_Job[object]]) -> None:
    for job in jobs:
        job.settle()


class Recurring:
    """Work that is done every so often, and again at once while it returns True."""

    def __init__(self, name: str, work: Work[bool], seconds: float) -> None:
        self.name = name
        self.work = work
        self.seconds = seconds
        self.due = time.monotonic() + seconds


class WriteThread:
    """Runs jobs that write, on a connection and a thread of its own.

    Args:
        path: the file.
        announce: called on the thread after each commit; returns how many other connections it told.
    """

    def __init__(self, path: Path, announce: Callable[[], int]) -> None:
        self._path = path
        self._announce = announce
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Job[object] | None] = queue.SimpleQueue()
        self._recurring: tuple[Recurring, ...] = ()
        self._connection: sqlite3.Connection | None = None
        self._closing = False
        self._give_up_at = 0.0
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name=f"tidelog-writer {path.name}", daemon=True)
        self._thread.start()

    async def run(self, work: Work[_T], *, timeout: float, weight: int = 1) -> _T:
        """Run the work in a transaction and return what it returned, once that is committed.

        Raises:
            LogError: what the work itself raised; it was rolled back.
            LogUnavailable: nothing was written: locked out, no room, or closed.
            OutcomeUnknown: the transaction had begun, and was not known to have ended within `timeout`.

        A cancellation leaves the outcome unknown.
        """
        if self._closing:
            raise self._closed()
        future: asyncio.Future[_T] = self._loop.create_future()
        job = _Job(work, weight, timeout, future)
        self._queue.put(job)  # type: ignore[arg-type]  # the queue does not care what a job returns
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            if job.withdraw():
                raise self._locked_out(timeout) from None
            raise OutcomeUnknown(
                f"The log {self._path} did not confirm within {timeout:g} s; what was sent may stand in it or"
                " not. Read what stands there."
            ) from None
        except asyncio.CancelledError:
            job.withdraw()
            raise

    def every(self, seconds: float, name: str, work: Work[bool]) -> Recurring:
        """Do the work every so many seconds, from now on; it goes on while the event loop is busy."""
        recurring = Recurring(name, work, seconds)
        self._recurring = (*self._recurring, recurring)
        self._queue.put(None)  # so that the thread looks at its watch
        return recurring

    def no_longer(self, recurring: Recurring) -> None:
        """Stop doing it. One that has begun may still end."""
        self._recurring = tuple(other for other in self._recurring if other is not recurring)

    async def close(self) -> None:
        """Stop the thread: what has queued up is still written, what cannot be within seconds is refused."""
        if not self._closing:
            self._give_up_at = time.monotonic() + _GIVE_UP_SECONDS
            self._closing = True
            self._queue.put(None)
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._stopped.wait()
        except TimeoutError:
            logger.warning("The writer of the log %s did not stop; it ends with the process.", self._path)
            return
        self._thread.join()

    def _main(self) -> None:
        busy_since = time.monotonic()
        try:
            while True:
                jobs = self._gather(wait=not self._due())
                if jobs:
                    others = self._commit(jobs)
                    if others and time.monotonic() - busy_since > _BUSY_SECONDS:
                        time.sleep(_GAP_SECONDS)
                        busy_since = time.monotonic()
                elif self._closing:
                    return
                due = self._due()
                if due is not None and not self._closing:
                    self._do(due)
                if self._queue.empty():
                    busy_since = time.monotonic()
        finally:
            self._abandon()

    def _gather(self, *, wait: bool) -> list[_Job[object]]:
        jobs: list[_Job[object]] = []
        weight = 0
        try:
            while weight < _LARGEST_GROUP:
                if wait and not jobs and not self._closing:
                    job = self._queue.get(timeout=self._seconds_until_due())
                else:
                    job = self._queue.get_nowait()
                if job is None:
                    wait = False
                else:
                    jobs.append(job)
                    weight += job.weight
        except queue.Empty:
            pass
        return jobs

    def _seconds_until_due(self) -> float:
        now = time.monotonic()
        return max(0.0, min((recurring.due - now for recurring in self._recurring), default=_IDLE_SECONDS))

    def _due(self) -> Recurring | None:
        now = time.monotonic()
        return next((recurring for recurring in self._recurring if recurring.due <= now), None)

    def _do(self, recurring: Recurring) -> None:
        job = _Job(recurring.work, 1, _RECURRING_SECONDS, None)
        self._commit([job])  # type: ignore[list-item]  # a job for nobody
        if job.error is not None:
            logger.warning(
                "%s of the log %s failed and is tried again: %s", recurring.name, self._path, job.error
            )
        recurring.due = time.monotonic() + (0.0 if job.result else recurring.seconds)

    def _commit(self, jobs: list[_Job[object]]) -> int:
        """Write the jobs in one transaction and answer them; returns how many other connections were told."""
        written = False
        try:
            connection = self._open()
            begun = self._begin(connection, jobs)
            if begun:
                written = self._write(connection, begun)
        except sqlite3.Error as error:
            self._fail(jobs, explain(error, self._path))
        self._call(lambda: _settle(jobs))
        return self._announce() if written else 0

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect_writer(self._path)
        return self._connection

    def _begin(self, connection: sqlite3.Connection, jobs: list[_Job[object]]) -> list[_Job[object]]:
        """Begin a transaction; returns the jobs that are still wanted in it. Without any, there is none."""
        while True:
            now = time.monotonic()
            for job in jobs:
                if job.deadline < now and job.withdraw():
                    job.error = self._locked_out(job.timeout)
            if all(job.withdrawn for job in jobs):
                return []
            try:
                connection.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                if not is_locked(error):
                    raise
                if self._closing and now > self._give_up_at:
                    raise
            # Not SQLite's own busy handler: it soon sleeps for 100 ms at a time, and cannot be stopped.
            time.sleep(LOCK_RETRY_SECONDS)
        begun = [job for job in jobs if job.begin()]
        if not begun:
            connection.execute("ROLLBACK")
        return begun

    def _write(self, connection: sqlite3.Connection, jobs: list[_Job[object]]) -> bool:
        """Do the jobs and commit them. True if something may stand in the file now."""
        try:
            for job in jobs:
                self._attempt(connection, job)
        except sqlite3.Error as error:
            # The disk is full, or the file cannot be read: nothing of the transaction remains.
            self._discard()
            self._fail(jobs, explain(error, self._path))
            return False
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            # What had reached the disk is for the next one who opens the file to find out.
            self._discard()
            self._fail(jobs, OutcomeUnknown(f"The log {self._path} could not confirm a commit: {error}."))
        return True

    def _attempt(self, connection: sqlite3.Connection, job: _Job[object]) -> None:
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(connection)
        except Exception as error:
            if type(error) in _FATAL:
                raise
            # Whatever else it is, it belongs to who asked, and not to the neighbours.
            job.error = error
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")

    def _discard(self) -> None:
        """Throw the connection away: after an error of the disk, only a new one knows what is there."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _fail(self, jobs: list[_Job[object]], error: LogError) -> None:
        for job in jobs:
            if job.error is None:
                job.error = error

    def _abandon(self) -> None:
        """The end of the thread: refuse what came too late."""
        self._closing = True
        late = self._gather(wait=False)
        self._fail(late, self._closed())
        self._discard()

        def settle() -> None:
            _settle(late)
            self._stopped.set()

        self._call(settle)

    def _call(self, callback: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop is closed, and with it everybody who could have waited.
            self._closing = True

    def _closed(self) -> LogUnavailable:
        return LogUnavailable(f"This connection to the log {self._path} is closed; open another one.")

    def _locked_out(self, seconds: float) -> LogUnavailable:
        return LogUnavailable(
            f"The log {self._path} was not free to write for {seconds:g} s; nothing was written. Try again."
        )
