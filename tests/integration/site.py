"""An installation as most users run it: Kafka, Postgres, and each role a process of the command line."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.cli.running import Installation, Process
from tests.providers.postgres import create_database, drop_database

PARTITIONS = 4
ENGINES = 2

QUEUES = ("audio", "billing", "images", "mail", "orders", "reports", "search", "video")
"""What the worker serves; enough of them that every way to place keys differs from another one somewhere."""

SHOP = """\
import asyncio
from pathlib import Path

from tidelog import App, JobContext

app = App()


@app.job("greet")
async def greet(ctx: JobContext, name: str) -> str:
    ctx.add_tag("greeted", name)
    return f"hello {name}"


@app.job("flaky")
async def flaky(ctx: JobContext) -> int:
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return ctx.attempt


@app.job("nap")
async def nap(marker: str, until: str) -> str:
    Path(marker).touch()
    while not Path(until).exists():
        await asyncio.sleep(0.01)
    return "rested"


@app.job("report", queue="reports")
async def report(year: str) -> str:
    return f"report of {year}"


app.schedule("reports/new-year", "0 0 1 1 *", report.job(year="the last year"))
"""
"""The application that the installation's own worker runs."""


@dataclass(frozen=True, slots=True)
class Site:
    """An installation that runs. `brokers`, `prefix` and `dsn` are all that a foreign program is told.

    Attributes:
        brokers: `host:port`.
        prefix: of the topics.
        dsn: of the database.
        installation: for what only Tidelog's own command line does.
    """

    brokers: str
    prefix: str
    dsn: str
    installation: Installation

    def topic(self, name: str) -> str:
        """A topic of contract section 2."""
        return f"{self.prefix}.{name}"


@contextmanager
def running_site(brokers: str, postgres_server: str, folder: Path) -> Iterator[Site]:
    """An installation with two engines, a projector and a worker, which all end in order with the block."""
    dsn = asyncio.run(create_database(postgres_server))
    try:
        site = _site(brokers, dsn, folder)
        made = site.installation.run("init")
        assert made.exit_code == 0, made.output
        with ExitStack() as running:
            roles = [running.enter_context(site.installation.start("engine")) for _ in range(ENGINES)]
            roles.append(running.enter_context(site.installation.start("projector")))
            roles.append(
                running.enter_context(
                    site.installation.start("worker", "shop:app", "--queues", ",".join(QUEUES))
                )
            )
            yield site
            _end_in_order(roles)
    finally:
        asyncio.run(drop_database(postgres_server, dsn))


def _site(brokers: str, dsn: str, folder: Path) -> Site:
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    prefix = f"site-{uuid4().hex}"
    variables = {
        "TIDELOG_LOG": f"kafka://{brokers}",
        "TIDELOG_POSTGRES": dsn,
        "TIDELOG_PREFIX": prefix,
        "TIDELOG_PARTITIONS": str(PARTITIONS),
    }
    return Site(brokers, prefix, dsn, Installation(folder, variables))


def _end_in_order(roles: list[Process]) -> None:
    for role in roles:
        role.signal(signal.SIGTERM)
    assert [role.end() for role in roles] == [0] * len(roles)
    assert "Traceback" not in "".join(line for role in roles for line in role.said)
