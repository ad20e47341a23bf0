"""Declared schedules: typed, and refused where they are declared when something is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog import App, CatchUp, InvalidCommand, Retry, Schedule, daily
from tidelog.handler.signature import DefinitionError
from tidelog_events.instants import SECOND, Micros
from tidelog_events.retry import RetryPolicy

app = App()


@app.job("send-invoice", queue="billing", retry=Retry(max_attempts=3, delays=[1]))
async def send_invoice(order_id: str) -> None:
    """Does nothing: it is only described."""


JOB = send_invoice.job(order_id="all")


def test_a_declaration_says_all_that_its_command_carries() -> None:
    declaring = App()
    schedule = declaring.schedule(
        "billing/nightly",
        daily("03:00"),
        JOB,
        time_zone="Europe/Berlin",
        catch_up="Coalesce",
        no_overlap=True,
        tags=["red", ("tenant", "acme"), {"tenant": "acme"}],
    )
    assert list(declaring.schedules) == [schedule]
    assert (schedule.schedule_id, schedule.queue, schedule.cron) == (
        "billing/nightly",
        "billing",
        "0 3 * * *",
    )
    assert (schedule.time_zone, schedule.wire_name) == ("Europe/Berlin", "send-invoice")
    command = schedule.command(actor="ann", command_id="c")
    assert (command.actor, command.command_id) == ("ann", "c")
    assert command.payload == b'{"order_id":"all"}'
    assert command.tags == ("red", ("tenant", "acme"))
    assert command.retry_policy == RetryPolicy(3, (Micros(SECOND),))
    assert (command.catch_up, command.no_overlap) == (CatchUp.COALESCE, True)


def test_what_is_not_said_is_the_contracts_default() -> None:
    command = App().schedule("any/where", "0 3 * * *", "resize", {"w": 80}, retry=Retry(2)).command()
    assert (command.time_zone, command.catch_up, command.no_overlap, command.tags) == (
        "UTC",
        CatchUp.SKIP,
        False,
        (),
    )
    assert (command.payload, command.retry_policy.max_attempts) == (b'{"w":80}', 2)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cron": "0 3 * *"}, "cron"),
        ({"cron": "60 * * * *"}, "minute"),
        ({"cron": "0 0 30 2 *"}, "never fires"),
        ({"cron": "@daily"}, "cron"),
        ({"cron": "*/5 2 * 3 0L", "time_zone": "Europe/Berlin"}, "never fires in Europe/Berlin"),
        ({"time_zone": "Europe/Berlim"}, "time_zone 'Europe/Berlim' is no name"),
        ({"time_zone": "+02:00"}, "is an offset and names no zone"),
        ({"schedule_id": "nightly"}, "schedule_id"),
        ({"schedule_id": "billing/a b"}, "schedule_id"),
        ({"catch_up": "All"}, "catch_up"),
        ({"no_overlap": "yes"}, "no_overlap"),
        ({"tags": [""]}, "tags"),
        ({"job": "x" * 129}, "wire_name"),
    ],
)
def test_what_is_wrong_is_said_at_the_declaration(wrong: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {"schedule_id": "billing/nightly", "cron": "0 3 * * *", "job": JOB}
    with pytest.raises(DefinitionError, match=r"^The schedule '.*' cannot be declared: ") as refused:
        App().schedule(**{**right, **wrong})
    assert said in str(refused.value)
    with pytest.raises(InvalidCommand):
        Schedule(**{**right, **wrong})


def test_a_payload_beyond_the_bound_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"payload .*65536"):
        App().schedule("q/s", "0 3 * * *", "x", "p" * 65_535)
    App().schedule("q/s", "0 3 * * *", "x", "p" * 65_534)


def test_the_jobs_of_a_schedule_run_on_its_own_queue() -> None:
    with pytest.raises(DefinitionError, match="Name the schedule billing/nightly, or declare the job with"):
        App().schedule("reports/nightly", "0 3 * * *", JOB)


def test_a_description_has_its_payload() -> None:
    with pytest.raises(ValueError, match="give no other one"):
        App().schedule("billing/nightly", "0 3 * * *", JOB, {"order_id": "7"})


def test_an_id_is_declared_once() -> None:
    declaring = App()
    declaring.schedule("billing/nightly", "0 3 * * *", JOB)
    with pytest.raises(DefinitionError, match=r"'billing/nightly' is declared twice, as '0 3 .* '0 4 "):
        declaring.schedule("billing/nightly", "0 4 * * *", JOB)
    assert [schedule.cron for schedule in declaring.schedules] == ["0 3 * * *"]
    assert "billing/nightly" in declaring.schedules
    assert len(declaring.schedules) == 1


def test_an_application_is_named_so_that_people_can_read_it() -> None:
    assert App(name="shop").name == "shop"
    for name in ("", "a\nb", "x" * 101):
        with pytest.raises(DefinitionError, match="is no name for an App"):
            App(name=name)
