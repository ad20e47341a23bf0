"""`tidelog why` on a running installation."""

from __future__ import annotations

from tests.cli.running import Installation


def test_reasons_are_told_and_written(running: Installation) -> None:
    running.run("enqueue", "greet", "--queue", "unserved", "--key", "k", "--delay", "3600")
    running.run("pause", "unserved", "--actor", "ann\x1b[2J")
    told = running.run("why", "unserved/k")
    assert told.exit_code == 0, told.output
    first, *reasons = told.stdout.splitlines()
    assert first == "unserved/k is Scheduled."
    assert reasons[0].startswith(r"- The queue unserved was paused by ann\x1b[2J at 2")
    assert reasons[1].startswith("- It is not due until 2")
    assert reasons[2].startswith("- No worker has asked for jobs of the queue unserved lately")
    written = running.json("why", "unserved/k")
    assert isinstance(written, dict)
    assert [reason["code"] for reason in written["reasons"]] == ["queue_paused", "not_due", "no_worker"]


def test_a_queue_that_is_served_is_seen_as_such(running: Installation) -> None:
    """By the parked claims of a real worker, which nothing has to announce."""
    running.run("enqueue", "greet", "--queue", "greetings", "--key", "why-later", "--delay", "3600")
    written = running.json("why", "greetings/why-later")
    assert isinstance(written, dict)
    assert [reason["code"] for reason in written["reasons"]] == ["not_due"]


def test_an_unknown_job_is_not_found(running: Installation) -> None:
    result = running.run("why", "default/never-there")
    assert (result.exit_code, result.stdout) == (1, "NotFound\n")
    assert "never enqueued" in result.stderr
    written = running.run("why", "default/never-there", "--json")
    assert written.exit_code == 1
    assert '"code":"unknown_job"' in written.stdout
