"""A pool of daemon threads for handlers that are plain functions, of jobs and of observers.

The standard library's pool joins its threads when the interpreter ends, so that one handler that cannot be
stopped would keep the process alive for ever. These threads end with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

Work: TypeAlias = Callable[[], None]


class DaemonThreads:
    """Runs each piece of work in a thread that is idle, or in a new one. Whoever submits bounds how many run.

    Work must not raise; what it raises ends its thread through `threading.excepthook`, and nothing else.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0

    def submit(self, work: Work) -> None:
        """Run the work soon. From any thread."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._count += 1
                threading.Thread(target=self._run, name=f"{self._name}-{self._count}", daemon=True).start()
        self._work.put(work)

    def close(self) -> None:
        """Let idle threads end; busy ones end after their work. Nothing is waited for."""
        with self._lock:
            for _ in range(self._count):
                self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            with self._lock:
                self._idle += 1
