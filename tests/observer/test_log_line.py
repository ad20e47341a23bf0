"""One line for each transition, whatever its texts hold."""

from __future__ import annotations

import logging

import pytest
from tests.conformance.cluster import MemoryCluster
from tests.observer.stage import Stage

from tidelog.observer.context import ObserverContext
from tidelog.observer.log_line import log_line


async def test_a_line_and_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    events = (await Stage.build(MemoryCluster())).partitions[0]
    caplog.set_level(logging.INFO, "tidelog.events")
    write = log_line()
    birth = events.birth()
    death = events.death(birth)
    death.error = "no\n" + "x" * 1_000
    for event in (birth, death, events.pause()):
        write(ObserverContext(event, observer_id="log"))
    born, dead, paused = caplog.records
    assert born.getMessage() == "enqueued q/0 Scheduled at=2026-01-01T00:00:00Z key=0-0 attempt=0"
    assert (born.levelno, dead.levelno) == (logging.INFO, logging.WARNING)
    assert "error='no\\n" in dead.getMessage()
    assert "\n" not in dead.getMessage()
    assert paused.getMessage().startswith("queue_paused q - at=")
    fields = vars(dead)["tidelog"]
    assert (fields["type"], fields["job_id"], fields["idempotency_key"]) == ("dead_lettered", "q/0", "0-0")
    assert "failure_detail" not in fields
    assert len(fields["error"]) == 501
