"""Outcomes on their way to the engine: batched, grouped by partition, sent again until they are answered."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from tidelog.worker.messages import Outgoing
from tidelog.worker.outcomes import written_size
from tidelog_events.commands import Outcome, Report
from tidelog_events.identity import ClientId, CommandId, Partition, WorkerId, partition_of, queue_of
from tidelog_events.replies import ReportReply, RowResult

_logger = logging.getLogger("tidelog.worker")

_MAX_ROWS = 500
_MAX_BYTES = 400 * 1024
_FIRST_RESEND_SECONDS = 2.0
_LONGEST_RESEND_SECONDS = 10.0
_NOT_SENT_SECONDS = 0.5


@dataclass(slots=True)
class _Row:
    outcome: Outcome
    give_up_at: float


@dataclass(slots=True)
class _SentReport:
    rows: list[_Row]
    give_up_at: float
    outgoing: Outgoing
    resend_at: float
    pause: float
    times: int = 1


@dataclass(frozen=True, slots=True)
class Settled:
    """One row and its result. When it was sent more than once, a StaleLease may only say that the first
    sending was applied.
    """

    outcome: Outcome
    result: RowResult
    was_resent: bool


class Reports:
    """The outcomes of one worker that no engine has answered yet."""

    def __init__(
        self, worker_id: WorkerId, reply_to: ClientId, partitions: int, next_id: Callable[[], CommandId]
    ) -> None:
        self._worker_id = worker_id
        self._reply_to = reply_to
        self._partitions = partitions
        self._next_id = next_id
        self._waiting: dict[Partition, list[_Row]] = {}
        self._alone: list[_Row] = []
        self._sent: dict[CommandId, _SentReport] = {}

    @property
    def is_empty(self) -> bool:
        """Whether every outcome is settled or given up."""
        return not (self._waiting or self._alone or self._sent)

    def add(self, outcome: Outcome, *, give_up_at: float, alone: bool = False) -> None:
        """Report an outcome with the next batch.

        Args:
            outcome: the row.
            give_up_at: when nothing can come of it any more, since the lease is over for good.
            alone: in a report of its own, so that it cannot spoil others.
        """
        row = _Row(outcome, give_up_at)
        if alone:
            self._alone.append(row)
        else:
            self._waiting.setdefault(self._partition(outcome), []).append(row)

    def take(self, now: float, most: int) -> list[Outgoing]:
        """The reports to send now: new ones, and those whose answer is overdue (same bytes, same id).

        Args:
            now: the monotonic time.
            most: of so many new outcomes at most; the others wait for the next batch.
        """
        outgoing: list[Outgoing] = []
        for partition, rows in list(self._waiting.items()):
            outgoing += [self._send(batch, now) for batch in _batches(rows[:most])]
            del self._waiting[partition]
            if most < len(rows):
                self._waiting[partition] = rows[most:]  # behind the others: they come first next time
                break
            most -= len(rows)
        outgoing += [self._send([row], now) for row in self._alone]
        self._alone = []
        for sent in self._sent.values():
            if sent.resend_at <= now:
                sent.times += 1
                sent.pause = min(2 * sent.pause, _LONGEST_RESEND_SECONDS)
                sent.resend_at = now + sent.pause
                outgoing.append(sent.outgoing)
        return outgoing

    def settle(self, reply: ReportReply) -> list[Settled]:
        """Take an answer; nothing for a report that was settled before."""
        sent = None if reply.command_id is None else self._sent.get(reply.command_id)
        if sent is None:
            return []
        if len(reply.results) != len(sent.rows):
            _logger.error(
                "A report of %d rows was answered with %d; passed over.", len(sent.rows), len(reply.results)
            )
            return []
        del self._sent[sent.outgoing.command_id]
        return [
            Settled(row.outcome, result, sent.times > 1)
            for row, result in zip(sent.rows, reply.results, strict=True)
        ]

    def refuse(self, command_id: CommandId) -> list[Outcome] | None:
        """A report was called invalid: its rows. None for a report that is not known here."""
        sent = self._sent.pop(command_id, None)
        return None if sent is None else [row.outcome for row in sent.rows]

    def not_sent(self, command_id: CommandId, now: float) -> None:
        """A report is certain not to be in the log: send it again soon."""
        sent = self._sent.get(command_id)
        if sent is not None:
            sent.times -= 1
            sent.resend_at = now + _NOT_SENT_SECONDS

    def expire(self, now: float) -> list[Outcome]:
        """Give up reports whose leases are all over for good."""
        lost: list[Outcome] = []
        for command_id, sent in list(self._sent.items()):
            if sent.give_up_at <= now:
                del self._sent[command_id]
                lost += [row.outcome for row in sent.rows]
        return lost

    def next_wake(self) -> float:
        """When `take` or `expire` has something to do without an event; infinity when never."""
        return min((min(sent.resend_at, sent.give_up_at) for sent in self._sent.values()), default=inf)

    def _partition(self, outcome: Outcome) -> Partition:
        return partition_of(queue_of(outcome.job_id), self._partitions)

    def _send(self, rows: list[_Row], now: float) -> Outgoing:
        command_id = self._next_id()
        command = Report.model_construct(
            command_id=command_id,
            reply_to=self._reply_to,
            worker_id=self._worker_id,
            outcomes=[row.outcome for row in rows],
        )
        outgoing = Outgoing(queue_of(rows[0].outcome.job_id), command_id, command)
        self._sent[command_id] = _SentReport(
            rows=rows,
            give_up_at=max(row.give_up_at for row in rows),
            outgoing=outgoing,
            resend_at=now + _FIRST_RESEND_SECONDS,
            pause=_FIRST_RESEND_SECONDS,
        )
        return outgoing


def _batches(rows: list[_Row]) -> list[list[_Row]]:
    """Cut rows into reports that are far below what a log takes as one record."""
    batches: list[list[_Row]] = []
    size = _MAX_BYTES
    for row in rows:
        row_size = written_size(row.outcome)
        if size + row_size > _MAX_BYTES or len(batches[-1]) >= _MAX_ROWS:
            batches.append([])
            size = 0
        batches[-1].append(row)
        size += row_size
    return batches
