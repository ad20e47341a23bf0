"""`tidelog stats` on a real Kafka: what it counts stands in Postgres, and a restart goes on where it was."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import asyncpg
from confluent_kafka import Producer
from tests.cli.running import SECONDS, Installation, Process
from tests.integration.outsider import Commander, Inbox, Worker, murmur2
from tests.integration.site import PARTITIONS, Site
from tests.language.samples import LIFE

from tidelog_events.codec import encode_transition
from tidelog_events.identity import JobId, QueueName
from tidelog_events.instants import SECOND, Instant
from tidelog_events.transitions import Enqueued

COUNTS = """
    SELECT wire_name, sum(enqueued)::int, sum(started)::int, sum(succeeded)::int, sum(failed)::int,
           sum(dead_lettered)::int, max(wait_p50) >= 0, max(run_p95) >= 0
    FROM tidelog.queue_stats WHERE queue = $1 GROUP BY wire_name ORDER BY wire_name"""

Row = tuple[object, ...]


class Shop:
    """A queue of the test's own, served by nobody but the test."""

    def __init__(self, commander: Commander, inbox: Inbox) -> None:
        self.queue = f"stats-{uuid4().hex}"
        self._commander, self._inbox = commander, inbox
        self._worker = Worker(commander, inbox, "clerk-1")

    def sell(self, wire_name: str, outcome: str, **fields: object) -> None:
        """A job goes its whole way."""
        self._commander.send({"type": "enqueue", "queue": self.queue, "wire_name": wire_name}, key=self.queue)
        self._worker.report(self._worker.claim(self.queue), outcome, **fields)


async def _until(site: Site, queue: str, expected: list[Row], role: Process) -> None:
    connection = await asyncpg.connect(site.dsn)
    found: list[Row] = []
    try:
        async with asyncio.timeout(SECONDS):
            while found != expected:
                assert role.popen.poll() is None, "".join(role.said)
                found = [tuple(row) for row in await connection.fetch(COUNTS, queue)]
    except TimeoutError:
        raise AssertionError(f"it stays at {found}: {''.join(role.said)}") from None
    finally:
        await connection.close()


def write_and_abort(site: Site, queue: str) -> None:
    """A birth that never was, in a transaction that is given up: an engine may die in the middle of one."""
    sample = LIFE[0]
    assert isinstance(sample, Enqueued)
    event = replace(
        sample,
        at=Instant(int(time.time()) * SECOND),
        job_id=JobId(f"{queue}/ghost"),
        queue=QueueName(queue),
        wire_name="ghost",
    )
    producer = Producer({"bootstrap.servers": site.brokers, "transactional.id": f"ghost-{uuid4().hex}"})
    producer.init_transactions()
    producer.begin_transaction()
    partition = murmur2(queue.encode()) % PARTITIONS
    producer.produce(site.topic("transitions"), encode_transition(event), partition=partition)
    producer.flush()
    producer.abort_transaction()


async def test_what_happens_is_counted_and_a_restart_counts_on(
    site: Site, commander: Commander, inbox: Inbox
) -> None:
    shop = Shop(commander, inbox)
    write_and_abort(site, shop.queue)
    shop.sell("parcel", "Success", output=1)
    shop.sell("letter", "Failure", error="lost", next_due=None)
    with site.installation.start("stats") as role:
        await _until(
            site,
            shop.queue,
            [("letter", 1, 1, 0, 1, 1, True, True), ("parcel", 1, 1, 1, 0, 0, True, True)],
            role,
        )
        role.signal(signal.SIGTERM)
        assert role.end() == 0, "".join(role.said)
    shop.sell("parcel", "Success")
    with site.installation.start("stats") as role:
        await _until(
            site,
            shop.queue,
            [("letter", 1, 1, 0, 1, 1, True, True), ("parcel", 2, 2, 2, 0, 0, True, True)],
            role,
        )


def test_the_embedded_log_is_refused_in_words(tmp_path: Path) -> None:
    installation = Installation.at(tmp_path)
    refused = installation.run("stats")
    assert refused.exit_code == 2
    assert "reads from Kafka alone" in refused.stderr
