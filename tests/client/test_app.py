"""The application: what it exports, what it declares, and its client over a real log, engine and Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.roles import at_work

import tidelog
from tidelog import App, JobContext, JobState, Result, Retry, Settings, SettingsError
from tidelog.engine.engine import Engine
from tidelog.handler.signature import DefinitionError
from tidelog.log.address import open_log
from tidelog.log.port import UnknownTopic
from tidelog.projector.projector import Projector
from tidelog_projections.projection import Projection


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that Postgres, run by an account of its own, may enter; pytest locks its own ones."""
    with TemporaryDirectory(prefix="tidelog-") as name:
        yield Path(name)


@pytest.fixture
def settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An installation of its own."""
    monkeypatch.chdir(folder)
    return Settings(
        log=f"sqlite:{folder / 'log.db'}", postgres=f"embedded:{folder / 'postgres'}", partitions=2
    )


@asynccontextmanager
async def running_engine(settings: Settings) -> AsyncIterator[None]:
    """The topics, and a real engine over a connection of its own."""
    async with await open_log(settings.log) as log:
        await log.create_topics(settings.topics.specs(settings.partitions, settings.partitions))
        async with at_work(Engine(log, settings.topics, settings.retention)):
            yield


@asynccontextmanager
async def running_projector(settings: Settings) -> AsyncIterator[None]:
    """A real projector."""
    async with (
        await open_log(settings.log) as log,
        await Projection.connect(settings.postgres) as projection,
        at_work(Projector(log, settings.topics, projection)),
    ):
        yield


def test_the_exported_names_are_these() -> None:
    assert sorted(tidelog.__all__) == [
        "App",
        "BadObserver",
        "BatchIncomplete",
        "BatchTooLarge",
        "BatchUnconfirmed",
        "CatchUp",
        "Client",
        "ClientClosed",
        "CommandRefused",
        "DefinitionError",
        "DependencyMode",
        "GiveUp",
        "InvalidCommand",
        "JobContext",
        "JobRecord",
        "JobRequest",
        "JobState",
        "JobTransition",
        "NewJob",
        "NoProjection",
        "NotCancellable",
        "NotRequeueable",
        "NotSent",
        "ObserverContext",
        "PayloadTooLarge",
        "ProjectionBehind",
        "Reason",
        "ReasonCode",
        "ReplyTimeout",
        "Result",
        "Retry",
        "Schedule",
        "ScheduleNotFound",
        "ScheduleView",
        "SendUnconfirmed",
        "Settings",
        "SettingsError",
        "TidelogError",
        "TooManyParents",
        "Transition",
        "TryAgain",
        "UnexpectedReply",
        "UnknownParent",
        "WaitTimeout",
        "Why",
        "WireNameTooLong",
        "daily",
        "every",
        "monthly",
        "weekly",
    ]
    assert all(hasattr(tidelog, name) for name in tidelog.__all__)


def test_declares_jobs() -> None:
    app = App()

    @app.job("send-invoice", queue="billing", retry=Retry(max_attempts=5, delays=[1, 5, 30]), timeout=30)
    async def send_invoice(ctx: JobContext, order_id: str) -> dict[str, str]:
        return {"sent": order_id, "by": ctx.queue}

    assert app.registry.find("send-invoice").timeout == 30
    described = send_invoice.job(order_id="42")
    assert (described.wire_name, described.queue) == ("send-invoice", "billing")
    assert described.payload == b'{"order_id":"42"}'
    assert described.retry == Retry(5, [1, 5, 30]).policy
    with pytest.raises(DefinitionError, match="send-invoice"):
        app.job("send-invoice")(lambda: None)


def test_settings_are_read_at_the_first_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_PARTITIONS", "none")
    app = App()
    with pytest.raises(SettingsError, match="TIDELOG_PARTITIONS"):
        _ = app.settings


async def test_a_log_without_topics_says_what_to_do(settings: Settings) -> None:
    with pytest.raises(UnknownTopic, match="tidelog init"):
        async with App(settings).client():
            pass


async def test_enqueues_without_postgres(settings: Settings, folder: Path) -> None:
    app = App(settings)

    @app.job("resize")
    async def resize(width: int) -> None: ...

    async with running_engine(settings), app.client() as client:
        first = await client.enqueue(resize.job(width=80), key="k")
        batch = await client.enqueue_many([resize.job(width=n) for n in range(50)])
        assert first == "default/k"
        assert len(set(batch)) == 50
        assert await client.cancel(first, actor="ann") is Result.CANCELLED_IMMEDIATELY
    assert not (folder / "postgres").exists()


async def test_reads_back_what_it_did(settings: Settings) -> None:
    async with (
        running_engine(settings),
        running_projector(settings),
        App(settings).client() as client,
    ):
        job_id = await client.enqueue("resize", {"width": 80}, tags=["a"], queue="images")
        record = await client.get(job_id, timeout=30)
        assert record is not None
        assert (record.state, record.payload) == (JobState.SCHEDULED, b'{"width":80}')

        waiting = asyncio.create_task(client.wait(job_id, timeout=30))
        await client.cancel(job_id, actor="ann")
        ended = await waiting
        assert (ended.state, ended.terminal_cause) == (JobState.CANCELLED, "ann")
        assert await client.get("images/unknown") is None
