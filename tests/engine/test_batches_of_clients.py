"""Batches of a client whose jobs wait for each other over queues of several partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.engine.house import TOPICS, House, eventually

from tidelog.client.client import Client
from tidelog.client.newjob import NewJob
from tidelog_events.identity import partition_of, queue_of

_PARTITIONS = 4
QUEUES = [
    next(f"q{number}" for number in range(100) if partition_of(f"q{number}", _PARTITIONS) == partition)
    for partition in range(_PARTITIONS)
]
"""One for each partition."""


@pytest.fixture
async def client(wide_house: House) -> AsyncIterator[Client]:
    async with Client.open(wide_house.log, TOPICS) as client:
        yield client


def _elsewhere(jobs: list[NewJob], queue: str) -> list[str]:
    return [job.job_id for job in jobs if queue_of(job.job_id) != queue]


def family() -> list[NewJob]:
    """Three generations in which each job is in another partition than its parents; the youngest first."""
    eldest = [NewJob("x", queue=queue, key="eldest") for queue in QUEUES]
    middle = [NewJob("x", queue=queue, key="middle", parents=_elsewhere(eldest, queue)) for queue in QUEUES]
    youngest = [
        NewJob("x", queue=queue, key="youngest", parents=_elsewhere(middle, queue)) for queue in QUEUES
    ]
    return [*youngest, *middle, *eldest]


@pytest.mark.parametrize("atomic", [False, True])
async def test_parents_of_the_batch_are_known_whatever_partition_they_are_in(
    wide_house: House, client: Client, atomic: bool
) -> None:
    jobs = family()
    async with wide_house.running():
        assert await client.enqueue_many(jobs, atomic=atomic) == [job.job_id for job in jobs]
    for partition in range(_PARTITIONS):
        events = await wide_house.transitions(partition)
        remaining = {event["job_id"]: event["parents_remaining"] for event in events}
        assert remaining == {
            f"{QUEUES[partition]}/eldest": 0,
            f"{QUEUES[partition]}/middle": 3,
            f"{QUEUES[partition]}/youngest": 3,
        }


async def test_a_batch_that_was_there_before_the_engine_is_decided_as_well(
    wide_house: House, client: Client
) -> None:
    jobs = family()
    sending = asyncio.create_task(client.enqueue_many(jobs, atomic=True))
    await eventually(lambda: client.pending == len(jobs))
    async with wide_house.running():
        assert await sending == [job.job_id for job in jobs]
