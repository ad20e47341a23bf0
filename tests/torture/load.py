"""Clients that enqueue all the time, and keep a journal of what they were told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from tests.torture.jobs import ONCE, PATIENT, QUEUES, WITHDRAWER, Kind, key_of
from tests.torture.journal import Journal

from tidelog.client.batch_errors import BatchIncomplete
from tidelog.client.client import Client
from tidelog.client.errors import CommandRefused, NotCancellable, ReplyTimeout
from tidelog.client.newjob import NewJob
from tidelog.log.port import LogUnavailable
from tidelog_events.errors import TidelogError
from tidelog_events.identity import JobId
from tidelog_events.states import DependencyMode

_ANSWER_SECONDS: Final = 4.0
_MUCH_LATER: Final = 24 * 3_600.0


class Producer:
    """One client that enqueues. It gives nothing up: what was not answered is sent again, as the same job.

    Args:
        client: whose connection survives all faults.
        number: part of the keys of its jobs.
        rng: what it enqueues.
        journal: of what was sent and what was acknowledged.
        pause: seconds between two batches.
    """

    def __init__(
        self, client: Client, number: int, rng: random.Random, journal: Journal, pause: float
    ) -> None:
        self._client = client
        self._number = number
        self._rng = rng
        self._journal = journal
        self._pause = pause
        self._made = 0
        self._unanswered: Sequence[NewJob] = ()
        self._to_withdraw: list[JobId] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Enqueue until `stop` is set, and then until everything that was sent is answered.

        Raises:
            CommandRefused: an engine refused what it must accept.
        """
        while not stop.is_set() or self._unanswered or self._to_withdraw:
            batch = self._unanswered or (() if stop.is_set() else self._new_batch())
            self._unanswered = await self._enqueue(batch) if batch else ()
            await self._withdraw()
            try:
                async with asyncio.timeout(self._pause):
                    await stop.wait()
            except TimeoutError:
                continue

    async def _enqueue(self, batch: Sequence[NewJob]) -> Sequence[NewJob]:
        """Enqueue a batch, and return it if it has to be sent again."""
        self._journal.sent(new.job_id for new in batch)
        try:
            accepted: Sequence[JobId | TidelogError] = await self._client.enqueue_many(
                batch, timeout=_ANSWER_SECONDS
            )
        except BatchIncomplete as error:
            accepted = error.results
            for result in accepted:
                if isinstance(result, CommandRefused):
                    raise result from error
        except LogUnavailable:
            return batch
        told = [result for result in accepted if not isinstance(result, TidelogError)]
        self._journal.acknowledged(told)
        if len(told) < len(batch):
            return batch
        self._to_withdraw += [job_id for job_id in told if f"/{Kind.WITHDRAWN}." in job_id]
        return ()

    async def _withdraw(self) -> None:
        for job_id in list(self._to_withdraw):
            try:
                await self._client.cancel(job_id, actor=WITHDRAWER, timeout=_ANSWER_SECONDS)
            except (ReplyTimeout, LogUnavailable):
                continue
            except NotCancellable:
                pass  # an earlier try was carried out, and its answer lost; the audit looks at the job
            self._to_withdraw.remove(job_id)

    def _new_batch(self) -> list[NewJob]:
        """A few jobs of one queue: some by themselves, some that wait for others of the batch.

        Now and then those that wait live on another queue, and so most often in another partition.
        """
        queue = self._rng.choice(QUEUES)
        single = self._rng.choices(
            (Kind.STEADY, Kind.THREADED, Kind.FLAKY, Kind.DOOMED), (6, 2, 2, 1), k=self._rng.randint(1, 6)
        )
        batch = [self._job(queue, kind) for kind in single]
        if self._rng.random() < 0.3:
            parents = [self._job(queue, Kind.STEADY), self._job(queue, Kind.FLAKY)]
            batch += [*parents, self._job(self._near(queue), Kind.AFTER_SUCCESS, parents)]
        if self._rng.random() < 0.2:
            doomed = [self._job(queue, Kind.DOOMED)]
            batch += [
                *doomed,
                self._job(self._near(queue), Kind.BEREFT, doomed),
                self._job(self._near(queue), Kind.AFTER_DOOM, doomed),
            ]
        if self._rng.random() < 0.2:
            batch.append(self._job(queue, Kind.WITHDRAWN))
        return batch

    def _near(self, queue: str) -> str:
        """That queue, or any."""
        return queue if self._rng.random() < 0.5 else self._rng.choice(QUEUES)

    def _job(self, queue: str, kind: Kind, parents: Sequence[NewJob] = ()) -> NewJob:
        self._made += 1
        handler = kind if kind in {Kind.THREADED, Kind.FLAKY, Kind.DOOMED} else Kind.STEADY
        # Most are short. Some are longer than a lease, so that faults meet leases that are being renewed, and
        # enough of them that a worker that is killed dies in the middle of a few.
        seconds = self._rng.uniform(0, 0.05) if self._rng.random() < 0.7 else self._rng.uniform(1, 4)
        return NewJob(
            handler.value,
            {"seconds": round(seconds, 3)},
            queue=queue,
            key=key_of(kind, f"{self._number}-{self._made}"),
            delay=_MUCH_LATER if kind is Kind.WITHDRAWN else None,
            parents=[parent.job_id for parent in parents],
            mode=DependencyMode.ON_ANY_TERMINAL if kind is Kind.AFTER_DOOM else DependencyMode.ON_SUCCESS,
            retry=ONCE if kind is Kind.DOOMED else PATIENT,
        )
