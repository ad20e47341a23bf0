"""The pump: does the driver's I/O on a thread and an event loop of its own.

So a handler that blocks the application's loop, or burns its CPU, cannot stop a heartbeat. Nothing that a
handler's author wrote runs in this thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, assert_never

from tidelog.client.inbox import Inbox
from tidelog.log.port import Log, LogUnavailable, NewRecord, OutcomeUnknown, Producer
from tidelog.log.topics import Topics
from tidelog.worker.dispatch import DispatchPolicy
from tidelog.worker.driver import Driver, DriverConfig
from tidelog.worker.handover import LoopCalls
from tidelog.worker.messages import (
    Action,
    Answered,
    Began,
    Drain,
    Ended,
    Event,
    Extend,
    NotSent,
    Outgoing,
    Sent,
    Start,
    Stop,
)
from tidelog.worker.runner import Runner
from tidelog_events.codec import encode_command
from tidelog_events.identity import JobId, partition_of

_logger = logging.getLogger("tidelog.worker")

LogFactory: TypeAlias = Callable[[], Awaitable[Log]]
"""Opens a connection to the log; called on the event loop that will use it."""

_APPEND_SECONDS = 5.0
_READ_SECONDS = 60.0
_BUSY_SECONDS = 0.02
"""The shortest wait while an append is under way: what is due then cannot be sent any sooner."""


class Pump:
    """The I/O of one worker.

    Args:
        open_log: opens the pump's own connection, in the pump's thread.
        topics: the names of the installation's topics.
        config: who the worker is.
        policy: the queues that it serves.
    """

    def __init__(
        self, open_log: LogFactory, topics: Topics, config: DriverConfig, policy: DispatchPolicy
    ) -> None:
        self._open_log = open_log
        self._topics = topics
        self._config = config
        self._policy = policy
        self._events: deque[Event] = deque()
        self._calls: LoopCalls | None = None
        self._wake = asyncio.Event()
        self.finished: concurrent.futures.Future[list[JobId]] = concurrent.futures.Future()
        """Done when the pump has ended: the jobs whose handlers did not end, or what the pump died of."""

    def start(self, runner: Runner) -> None:
        """Start the thread. Call it once."""
        threading.Thread(target=self._main, args=(runner,), name="tidelog-worker-pump", daemon=True).start()

    def tell(self, event: Began | Ended | Drain) -> None:
        """Something happened. From any thread, also from a signal handler: it takes no lock."""
        self._events.append(event)
        # Before the pump has begun nobody waits; after its end nobody is left who would want to know.
        if self._calls is not None:
            self._calls.hand_over(self._wake.set)

    def _main(self, runner: Runner) -> None:
        try:
            left_behind = asyncio.run(self._run(runner))
        except BaseException as error:  # noqa: BLE001  it is raised again where `finished` is awaited
            self.finished.set_exception(error)
        else:
            self.finished.set_result(left_behind)

    async def _run(self, runner: Runner) -> list[JobId]:
        async with await self._open_log() as log:
            partitions = await log.partitions(self._topics.commands)
            inbox = Inbox(log, self._topics, self._config.reply_to)
            await inbox.start()
            producer = await log.producer()
            driver = Driver(self._config, self._policy, partitions)
            self._calls = LoopCalls(asyncio.get_running_loop())
            reading = asyncio.create_task(self._read(inbox), name="tidelog worker inbox")
            reading.add_done_callback(lambda _: self._wake.set())
            try:
                await self._drive(
                    driver, runner, _Sender(producer, self._topics.commands, partitions), reading
                )
            finally:
                reading.cancel()
                await asyncio.wait([reading])
                await inbox.close()
                await producer.close()
            return driver.left_behind()

    async def _read(self, inbox: Inbox) -> None:
        while True:
            for answer in await inbox.read(timeout=_READ_SECONDS):
                self._events.append(Answered(answer))
            self._wake.set()

    async def _drive(
        self, driver: Driver, runner: Runner, sender: _Sender, reading: asyncio.Task[None]
    ) -> None:
        sending: asyncio.Task[Sent | NotSent] | None = None
        while True:
            self._wake.clear()
            if sending is not None and sending.done():
                self._events.append(sending.result())
                sending = None
            for action in driver.step(self._taken(), time.monotonic()):
                _perform(action, runner)
            if sending is None and (batch := driver.take_commands()):
                sending = asyncio.create_task(sender.send(batch), name="tidelog worker send")
                sending.add_done_callback(lambda _: self._wake.set())
            if sending is None and driver.is_done():
                return
            if reading.done():
                reading.result()
            await self._wait(driver.next_wake(), _BUSY_SECONDS if sending is not None else 0.0)

    async def _wait(self, wake: float, least: float) -> None:
        """Until something happens or that time has come, and so many seconds have passed at least."""
        try:
            async with asyncio.timeout(max(wake - time.monotonic(), least)):
                await self._wake.wait()
        except TimeoutError:
            return

    def _taken(self) -> list[Event]:
        events: list[Event] = []
        while self._events:
            events.append(self._events.popleft())
        return events


class _Sender:
    """Writes batches of commands to the log, one after the other."""

    def __init__(self, producer: Producer, topic: str, partitions: int) -> None:
        self._producer = producer
        self._topic = topic
        self._partitions = partitions
        self._is_away = False

    async def send(self, batch: Sequence[Outgoing]) -> Sent | NotSent:
        """Send a batch. Returns what became of it; all else will be told by answers."""
        records = [
            NewRecord(
                self._topic,
                partition_of(outgoing.queue, self._partitions),
                outgoing.queue.encode(),
                encode_command(outgoing.command),
            )
            for outgoing in batch
        ]
        try:
            offsets = await self._producer.append(records, timeout=_APPEND_SECONDS)
        except LogUnavailable as error:
            self._trouble(error)
            return NotSent(tuple(outgoing.command_id for outgoing in batch))
        except OutcomeUnknown as error:
            self._trouble(error)
            return Sent(tuple((outgoing.command_id, None) for outgoing in batch))
        if self._is_away:
            self._is_away = False
            _logger.info("The log takes commands again.")
        return Sent(
            tuple((outgoing.command_id, offset) for outgoing, offset in zip(batch, offsets, strict=True))
        )

    def _trouble(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            _logger.warning("Commands cannot be sent and are tried again: %s", error)


def _perform(action: Action, runner: Runner) -> None:
    match action:
        case Start(grant):
            runner.start(grant)
        case Stop(key, reason):
            runner.stop(key, reason)
        case Extend(key, lease_expiry):
            runner.extend(key, lease_expiry)
        case _:
            assert_never(action)
