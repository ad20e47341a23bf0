"""The application: its jobs, and the way to a client (contract section 8)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidelog.client.client import Client
from tidelog.jobs import JobDecorator, Retry, declare
from tidelog.log.address import open_log
from tidelog.settings import Settings
from tidelog.worker.registry import JobRegistry
from tidelog_events.identity import DEFAULT_QUEUE
from tidelog_projections.projection import Projection


class App:
    """Where the jobs of an application are declared, and where its clients come from.

    Args:
        settings: where log and Postgres are. When absent they are read from the environment and
            `tidelog.toml` at the first need, so that to import an application's module needs neither.

    Attributes:
        registry: the declared jobs, for workers.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings
        self.registry = JobRegistry()

    @property
    def settings(self) -> Settings:
        """The settings. Raises `SettingsError` when they are read now and one of them is wrong."""
        if self._settings is None:
            self._settings = Settings()
        return self._settings

    def job(
        self,
        wire_name: str,
        *,
        queue: str = DEFAULT_QUEUE,
        retry: Retry | None = None,
        timeout: float | None = None,
    ) -> JobDecorator:
        """Declare the decorated function as the handler of a job.

        The function can still be called as it is; `.job(...)` on it describes a job to enqueue.

        Args:
            wire_name: what commands call the job by, 1 to 128 characters, once per application. Keep it when
                the function is renamed.
            queue: where the job is enqueued unless a call says otherwise.
            retry: how a failed attempt is tried again; ten attempts with growing delays when absent.
            timeout: seconds that one attempt may take; no bound when absent.

        Raises:
            DefinitionError: one of these is wrong, the wire name has a handler already, or an argument of
                the function has no form in JSON.
        """
        return declare(wire_name, queue=queue, retry=retry, timeout=timeout, register=self.registry.add)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client on connections of its own, which end with the block.

        Postgres is connected to by the first `get` or `wait`; to enqueue needs the log alone.

        Raises:
            SettingsError: a setting is wrong.
            LogError: the log cannot be opened or reached; the message names it.
            UnknownTopic: the log has no topics yet; `tidelog init` creates them.
        """
        settings = self.settings
        async with (
            await open_log(settings.log, kafka=settings.kafka) as log,
            Client.open(
                log, settings.topics, projection=lambda: Projection.connect(settings.postgres)
            ) as client,
        ):
            yield client
