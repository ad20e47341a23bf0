"""A worker: claims jobs from its queues, runs their handlers, reports what came of them."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from typing import Any

from tidelog.handler.context import OutputReader
from tidelog.log.topics import Topics
from tidelog.worker.driver import CLOSE_SECONDS, SHUTDOWN_PATIENCE_SECONDS, DriverConfig
from tidelog.worker.messages import Drain
from tidelog.worker.pump import LogFactory, Pump
from tidelog.worker.registry import JobRegistry
from tidelog.worker.runner import Runner
from tidelog.worker.settings import WorkerSettings
from tidelog_events.errors import TidelogError
from tidelog_events.identity import ClientId, JobId, WorkerId

_logger = logging.getLogger("tidelog.worker")

_MAX_HOST_CHARS = 100
_LAST_WORD_SECONDS = 10.0
"""Beyond the worker's own bounds, for closing its connection to the log."""


class WorkerHangs(TidelogError):
    """A worker did not end within its bounds. What it held will expire; the process should end."""


def new_worker_id() -> WorkerId:
    """An id that no start of a worker had before: host, process, and something random."""
    host = "".join(char for char in socket.gethostname() if char.isprintable())[:_MAX_HOST_CHARS]
    return WorkerId(f"{host or 'host'}-{os.getpid()}-{secrets.token_hex(6)}")


class Worker:
    """Runs the jobs of an application.

    Args:
        registry: the jobs that it can run.
        open_log: opens a connection to the log; the worker does so in a thread of its own, and closes it.
        topics: the names of the installation's topics.
        settings: how it works.
        read_output: how handlers read the outputs of other jobs; None: they cannot.

    Raises:
        BadDispatch: there is no queue to serve.
    """

    def __init__(
        self,
        *,
        registry: JobRegistry,
        open_log: LogFactory,
        topics: Topics,
        settings: WorkerSettings,
        read_output: OutputReader | None = None,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._read_output = read_output
        self._policy = settings.policy(registry.queues)
        self._worker_id = new_worker_id()
        config = DriverConfig(
            worker_id=self._worker_id,
            reply_to=ClientId(self._worker_id),
            session=secrets.token_hex(8),
            concurrency=settings.concurrency,
            lease_seconds=settings.lease_seconds,
            wait_seconds=settings.wait_seconds,
        )
        self._pump = Pump(open_log, topics, config, self._policy)

    @property
    def worker_id(self) -> WorkerId:
        """New for every worker."""
        return self._worker_id

    def request_stop(self, *, grace_seconds: float | None = None) -> None:
        """Stop claiming and end within the grace time, the settings' own unless another is given.

        May be called from any thread and from a signal handler, also while a handler blocks the event loop.
        A second call can only shorten the time.
        """
        grace = self._settings.grace_seconds if grace_seconds is None else grace_seconds
        self._pump.tell(Drain(grace))

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set (or `request_stop` was called), then end gracefully. Call it once.

        Running jobs may finish within the grace time while their leases are renewed; what is left is given
        back to the queue without a charge. A thread that cannot be stopped is left behind; it ends with the
        process. A cancellation is a stop without grace time.

        Raises:
            LogUnavailable: the log could not be reached at the start.
            UnknownTopic: the installation has no topics yet.
            WorkerHangs: it did not end within its bounds.
        """
        runner = Runner(
            self._registry,
            loop=asyncio.get_running_loop(),
            cancel_by_exception=self._settings.cancel_by_exception,
            read_output=self._read_output,
            tell=self._pump.tell,
        )
        _logger.info(
            "Worker %s serves %s with %d slots.",
            self._worker_id,
            ", ".join(self._policy.queues),
            self._settings.concurrency,
        )
        self._pump.start(runner)
        finished = asyncio.wrap_future(self._pump.finished)
        stopping = asyncio.create_task(stop.wait(), name="tidelog worker stop")
        try:
            either: list[asyncio.Future[Any]] = [finished, stopping]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            self.request_stop()
            await self._end(finished, self._settings.grace_seconds)
        except asyncio.CancelledError:
            self.request_stop(grace_seconds=0.0)
            try:
                await self._end(finished, 0.0)
            except TidelogError:
                _logger.exception("Worker %s was cancelled and did not end well.", self._worker_id)
            raise
        finally:
            stopping.cancel()
            runner.close()

    async def _end(self, finished: asyncio.Future[list[JobId]], grace_seconds: float) -> None:
        bound = grace_seconds + SHUTDOWN_PATIENCE_SECONDS + CLOSE_SECONDS + _LAST_WORD_SECONDS
        await asyncio.wait([finished], timeout=bound)
        if not finished.done():
            raise WorkerHangs(f"Worker {self._worker_id} did not end within {bound:g} s. End its process.")
        for job_id in finished.result():
            _logger.warning("The handler of %s has not ended; it is left behind.", job_id)
        _logger.info("Worker %s has ended.", self._worker_id)
