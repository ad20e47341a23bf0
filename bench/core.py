"""The rules alone: commands through `decide`, without a log, a clock or a process around them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.errors import MeasureFailed
from tidelog.cli.collector import tune_collector
from tidelog.core.decide import decide
from tidelog.core.decision import Addressed, Decision
from tidelog.core.state import PartitionState
from tidelog_events.commands import Claim, Command, Enqueue, Report, Success
from tidelog_events.identity import ClientId, JobId, Partition, QueueName, WorkerId
from tidelog_events.instants import Instant
from tidelog_events.replies import ClaimReply, Grant

_NOW = Instant(1_767_225_600_000_000)
_QUEUE = QueueName("bench")
_CLIENT = ClientId("client")
_WORKER = WorkerId("worker")
_BATCH = 1_000


class _Rules:
    """A partition in memory, and the time that its decisions took."""

    def __init__(self) -> None:
        self._state = PartitionState(Partition(0), partitions=1)
        self.commands = 0
        self.seconds = 0.0

    def decide_all(self, commands: Sequence[Command]) -> list[Grant]:
        """Decide the commands, in batches as an engine does; what was granted to claims among them."""
        grants: list[Grant] = []
        for first in range(0, len(commands), _BATCH):
            for decision in self._decide(commands[first : first + _BATCH]):
                grants += _granted(decision)
        return grants

    def _decide(self, commands: Sequence[Command]) -> list[Decision]:
        """Decide one batch: this, and nothing else, is timed."""
        state = self._state
        began = time.perf_counter()
        decisions = [
            decide(state, command, _NOW, (0, position))
            for position, command in enumerate(commands, self.commands)
        ]
        self.seconds += time.perf_counter() - began
        self.commands += len(commands)
        return decisions


def _granted(decision: Decision) -> list[Grant]:
    return [
        grant
        for output in decision.outputs
        if isinstance(output, Addressed) and isinstance(output.answer, ClaimReply)
        for grant in output.answer.jobs
    ]


def run_lives(jobs: int, jobs_per_command: int) -> tuple[float, float]:
    """Enqueue, claim and report so many jobs; commands and jobs a second.

    Args:
        jobs: how many.
        jobs_per_command: that one claim asks for and one report tells; an enqueue is always for one.

    Raises:
        MeasureFailed: not every job was granted.
    """
    tune_collector()  # as in an engine's process
    rules = _Rules()
    rules.decide_all(
        [
            Enqueue(reply_to=_CLIENT, wire_name="noop", job_id=JobId(f"{_QUEUE}/{number}"))
            for number in range(jobs)
        ]
    )
    claims = -(-jobs // jobs_per_command)
    grants = rules.decide_all(
        [Claim(reply_to=ClientId(_WORKER), worker_id=_WORKER, queue=_QUEUE, max_jobs=jobs_per_command)]
        * claims
    )
    if len(grants) != jobs:
        raise MeasureFailed(f"{len(grants)} of {jobs} jobs were granted to {claims} claims")
    rules.decide_all(
        [_report(grants[first : first + jobs_per_command]) for first in range(0, jobs, jobs_per_command)]
    )
    return rules.commands / rules.seconds, jobs / rules.seconds


def _report(grants: Sequence[Grant]) -> Report:
    return Report(
        reply_to=ClientId(_WORKER),
        worker_id=_WORKER,
        outcomes=[Success(job_id=grant.job_id, attempt=grant.attempt, lease=grant.lease) for grant in grants],
    )
