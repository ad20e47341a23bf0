"""What one transaction holds: as much as fits, in order, and nothing is lost between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.conformance.cluster import Cluster
from tests.core.playing import cancel, claim, enqueue, pause
from tests.engine.faults import Fault, FaultyLog, OnAppend
from tests.engine.house import TOPICS, House

from tidelog.engine import ProcessorSettings
from tidelog.log.port import MAX_RECORD_BYTES, NewRecord
from tidelog_events.bounds import MAX_REPLY_BYTES

SMALL = ProcessorSettings(idle_seconds=0.01, max_bytes=20_000)


class Transactions:
    """Watches what is appended together."""

    def __init__(self, fault_at: int | None = None) -> None:
        self.seen: list[list[NewRecord]] = []
        self._fault_at = fault_at

    def on_append(self, records: Sequence[NewRecord]) -> Fault | None:
        self.seen.append(list(records))
        return Fault.UNACKNOWLEDGED if len(self.seen) == self._fault_at else None

    def decided(self, kind: str) -> list[int]:
        """How many transitions of that type each transaction held that held some."""
        mark = f'"type":"{kind}"'.encode()
        counts = [
            sum(record.topic == TOPICS.transitions and mark in (record.value or b"") for record in records)
            for records in self.seen
        ]
        return [count for count in counts if count]

    def largest(self) -> int:
        """The bytes of the largest transaction."""
        return max(sum(len(record.value or b"") for record in records) for records in self.seen)


async def serve_a_hundred(house: House, cluster: Cluster, on_append: OnAppend) -> None:
    """Enqueue a hundred jobs of a kilobyte each, which stand in the log together, with small transactions."""
    payload = "x" * 1_000
    await house.send_all([enqueue(f"q/{n}", payload=payload, command_id=str(n)) for n in range(100)])
    log = FaultyLog(await cluster.connect(), on_append)
    async with house.running(log, processor_settings=SMALL):
        assert (await house.ask(claim("q", "w", max_jobs=500, command_id="claim")))["jobs"]
    assert (await house.steps())[:100] == [f"enqueued q/{n}" for n in range(100)]
    answers = Counter(reply.get("command_id") for reply in await house.replies())
    assert all(answers[str(n)] == 1 for n in range(100))


async def test_what_does_not_fit_into_one_transaction_goes_into_the_next(
    house: House, cluster: Cluster
) -> None:
    transactions = Transactions()
    await serve_a_hundred(house, cluster, transactions.on_append)
    enqueued = transactions.decided("enqueued")
    assert sum(enqueued) == 100
    assert len(enqueued) > 10
    assert max(enqueued) < 20


async def test_a_commit_lost_in_the_middle_loses_and_repeats_nothing(house: House, cluster: Cluster) -> None:
    transactions = Transactions(fault_at=4)
    await serve_a_hundred(house, cluster, transactions.on_append)


async def test_the_state_that_is_rewritten_counts(house: House, cluster: Cluster) -> None:
    """Cancelling large jobs is little to say and much to keep: their payloads are written again."""
    payload = "x" * 60_000
    async with house.running():
        await house.send_all([enqueue(f"q/{n}", payload=payload, command_id=f"e{n}") for n in range(60)])
        await house.reply("e59")
    transactions = Transactions()
    await house.send_all([cancel(f"q/{n}", command_id=f"c{n}") for n in range(60)])
    settings = ProcessorSettings(idle_seconds=0.01, max_bytes=1_000_000)
    async with house.running(
        FaultyLog(await cluster.connect(), transactions.on_append), processor_settings=settings
    ):
        await house.reply("c59")
    assert sum(transactions.decided("cancelled")) == 60
    assert transactions.largest() < 1_200_000


async def test_few_commands_at_a_time_are_enough(house: House) -> None:
    settings = ProcessorSettings(idle_seconds=0.01, max_commands=3, max_timers=2)
    await house.send_all([enqueue(f"q/{n}", command_id=str(n)) for n in range(20)])
    async with house.running(processor_settings=settings):
        await house.ask(claim("q", "w", max_jobs=20, lease_seconds=5, command_id="claim"))
        house.clock.advance(5)
        await house.until_step("lease_expired q/19")
    steps = await house.steps()
    assert [step for step in steps if step.startswith("lease_expired")] == [
        f"lease_expired q/{n}" for n in range(20)
    ]


async def test_no_grant_is_larger_than_a_reply_may_be(house: House, cluster: Cluster) -> None:
    transactions = Transactions()
    await house.send_all([enqueue(f"q/{n}", payload="x" * 65_534, command_id=str(n)) for n in range(30)])
    async with house.running(FaultyLog(await cluster.connect(), transactions.on_append)):
        await house.send(claim("q", "w", max_jobs=500, command_id="claim"))
        await house.reply("claim")
    pieces = [reply for reply in await house.replies() if reply.get("command_id") == "claim"]
    assert sorted(job["job_id"] for piece in pieces for job in piece["jobs"]) == sorted(
        f"q/{n}" for n in range(30)
    )
    assert [piece.get("more") for piece in pieces] == [True] * (len(pieces) - 1) + [None]
    for records in transactions.seen:
        for record in records:
            assert len(record.value or b"") <= (
                MAX_REPLY_BYTES if record.topic == TOPICS.replies else MAX_RECORD_BYTES
            )


async def test_an_idle_partition_writes_nothing(house: House, cluster: Cluster) -> None:
    transactions = Transactions()
    async with house.running(FaultyLog(await cluster.connect(), transactions.on_append)):
        await house.ask(pause("q", command_id="1"))
        house.clock.advance(3_600)
        await house.ask(claim("q", "w", command_id="2"))
    hello, *commands = transactions.seen
    assert len(commands) == 2
    assert {record.topic for record in hello} == {TOPICS.replies, TOPICS.state}
