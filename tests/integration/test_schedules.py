"""Schedules on Kafka: the worker has put what it declares, and what is triggered runs."""

from __future__ import annotations

from tests.integration.outsider import Commander, Events, Inbox
from tests.integration.site import Site


def test_a_declared_schedule_is_there_and_is_triggered_by_anybody(
    site: Site, commander: Commander, inbox: Inbox, events: Events
) -> None:
    events.until(lambda: any(event["type"] == "schedule_put" for event in events.all()))
    put = next(event for event in events.all() if event["type"] == "schedule_put")
    assert (put["schedule_id"], put["actor"], put["cron"]) == ("reports/new-year", "app", "0 0 1 1 *")
    trigger = {
        "type": "trigger_schedule",
        "schedule_id": "reports/new-year",
        "command_id": "now",
        "reply_to": inbox.client_id,
        "actor": "somebody",
    }
    commander.send(trigger, key="reports")
    reply = inbox.reply("now")
    job_id = "reports/new-year@trigger-now"
    assert (reply["result"], reply["job_id"]) == ("Triggered", job_id)
    assert events.until_type(job_id, "succeeded")["output"] == "report of the last year"
    found = site.installation.json("schedules", "--queue", "reports")
    assert isinstance(found, dict)
    [schedule] = found["schedules"]
    assert (schedule["last_job_id"], schedule["last_job_state"]) == (job_id, "Succeeded")
