"""One attempt of a handler under a harness: what it waits for, which tells whether time may go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.testing.timers import VirtualTimers

current_attempt: ContextVar[Attempt | None] = ContextVar("tidelog_testing_attempt", default=None)
"""The attempt whose handler runs here: in its task, in every task that it starts, and in its thread."""


class Attempt:
    """An attempt that began.

    It *waits* when only virtual time or the test itself can move it on: it sleeps, or waits to be cancelled
    or for the end of another job. Else it is at work: it computes, or waits for the world (a socket, a
    thread), and virtual time stands still meanwhile.

    Attributes:
        number: in the order of beginning.
        what: whose handler it is of, for messages ("q/1 (mail)").
        task: of an async handler.
        sleeps: its pending `asyncio.sleep`s.
        is_over: whether its outcome was told.
    """

    def __init__(self, number: int, what: str, timers: VirtualTimers) -> None:
        self.number = number
        self.what = what
        self.timers = timers
        self.task: asyncio.Task[Any] | None = None
        self.sleeps: set[asyncio.TimerHandle] = set()
        self.is_over = False
        self._waits: set[object] = set()
        self._blocked: threading.Event | None = None
        self._parked_on: object = None

    @property
    def is_waiting(self) -> bool:
        """Whether only virtual time or the test can move it on."""
        if self.is_over or self._waits or any(not sleep.cancelled() for sleep in self.sleeps):
            return True
        if self._blocked is not None and not self._blocked.is_set():
            return True
        return self._parked_on is not None and self._parked_on is self.place()

    def place(self) -> object:
        """Where it stands: another object as soon as its handler has taken a step."""
        place: object = self if self.task is None else self.task.get_coro()
        while (inner := getattr(place, "cr_await", None) or getattr(place, "gi_yieldfrom", None)) is not None:
            place = inner
        return place

    def park(self) -> None:
        """Take it for one that waits, until it takes a step."""
        self._parked_on = self.place()

    @contextmanager
    def waiting(self) -> Iterator[Callable[[], None]]:
        """The handler waits, within, for what virtual time or the test will bring.

        Whoever brings it calls what this gives: from then on the handler is at work, on whatever thread it
        runs, and need not have taken a step yet.
        """
        wait = object()
        self._waits.add(wait)
        try:
            yield lambda: self._waits.discard(wait)
        finally:
            self._waits.discard(wait)

    def block(self, woken: threading.Event) -> None:
        """The handler's thread waits until that event is set, by virtual time or by the test."""
        self._blocked = woken
