"""The life of a job: its steps in Postgres, and all that the log tells, without Postgres too."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import orjson
from tests.cli.running import SECONDS, Installation
from tests.cli.test_schedules import put

from tidelog.client.schedule import Schedule


def history(running: Installation, job_id: str, *options: str) -> dict[str, list[dict[str, object]]]:
    """What `tidelog history --json` prints."""
    found = running.json("history", job_id, *options)
    assert isinstance(found, dict)
    return found


def types(found: dict[str, list[dict[str, object]]]) -> list[object]:
    return [fact["type"] for fact in found["transitions"]]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline


def test_who_cancelled_a_running_job_is_shown(running: Installation) -> None:
    marker = running.folder / "cancelled-nap"
    payload = f'{{"marker": "{marker}", "seconds": 3600}}'
    running.run("enqueue", "nap", "--queue", "naps", "--key", "cancelled", "--payload", payload)
    until(marker.exists)
    assert running.run("cancel", "naps/cancelled", "--actor", "ann").stdout == "CancellationRequested\n"
    until(lambda: types(history(running, "naps/cancelled"))[-1] == "cancelled")

    found = history(running, "naps/cancelled")
    assert types(found) == ["enqueued", "leased", "cancelled"]
    [request] = found["cancel_requests"]
    assert request["actor"] == "ann"
    lines = running.run("history", "naps/cancelled").stdout.splitlines()
    assert [line.split()[1 if line[0].isspace() else 2] for line in lines[1:]] == [
        *("enqueued", "leased", "cancel_requested", "cancelled")
    ]
    assert " ann" in lines[3]

    logged = history(running, "naps/cancelled", "--from-log")
    assert types(logged) == ["enqueued", "leased", "cancel_requested", "cancelled"]
    assert logged["transitions"][2]["actor"] == "ann"
    assert logged["transitions"][0]["payload"] == {"marker": str(marker), "seconds": 3600}


def test_a_cancel_at_once_is_one_step(running: Installation) -> None:
    running.run("enqueue", "later", "--key", "cancelled-at-once", "--delay", "3600")
    running.run("cancel", "default/cancelled-at-once", "--actor", "ann")
    found = history(running, "default/cancelled-at-once")
    assert (types(found), found["cancel_requests"]) == (["enqueued", "cancelled"], [])


def test_the_log_tells_every_life_of_an_id_and_what_is_no_step(installation: Installation) -> None:
    """Renewals, parents that ended, the purge; and Postgres is not asked."""
    settings = {"TIDELOG_RETENTION_SUCCEEDED": "0.2", "TIDELOG_ARCHIVE": "on"}
    hasty = Installation(installation.folder, {**installation.variables, **settings})
    with hasty.start("up", "shop:app", "--lease-seconds", "0.6") as process:
        process.expect("Tidelog is up")
        for _ in range(2):
            marker, release = hasty.folder / "marker", hasty.folder / "release"
            for path in (marker, release):
                path.unlink(missing_ok=True)
            enqueue_family(hasty, marker, release)
            until(lambda: "lease_renewed" in types(history(hasty, "naps/slow", "--from-log")))
            release.touch()
            until(lambda: logged_types(hasty, "greetings/child")[-1:] == ["purged"])
        look_into_the_archive(hasty)
    without = Installation(hasty.folder, {**hasty.variables, "TIDELOG_POSTGRES": "postgresql://nobody:1/x"})
    found = history(without, "greetings/child", "--from-log")
    life = ["enqueued", "parent_resolved", "released", "leased", "succeeded", "purged"]
    assert types(found) == [*life, *life]
    shown = without.run("history", "greetings/child", "--from-log")
    assert shown.stderr.count("life ") == 2
    assert "naps/slow ended Succeeded" in shown.stdout or "greetings/quick ended Succeeded" in shown.stdout
    assert [row.split()[0] for row in shown.stdout.splitlines() if row[:1] == "0"] == ["0", "0"]


def look_into_the_archive(running: Installation) -> None:
    """What was purged is listed, shown and explained, and said to be of the archive."""

    def archived() -> list[dict[str, object]]:
        page = running.json("jobs", "--archived", "--queue", "greetings")
        assert isinstance(page, dict)
        return [job for job in page["jobs"] if job["job_id"] == "greetings/child"]

    until(lambda: len(archived()) == 2)
    assert archived()[0]["parents"] == ["naps/slow", "greetings/quick"]
    assert running.json("jobs", "--queue", "greetings") == {"jobs": [], "after": None}
    found = running.run("job", "greetings/child", "--json")
    assert found.exit_code == 0
    assert "greetings/child was purged at 2" in found.stderr
    record = orjson.loads(found.stdout)
    assert (record["state"], record["output"]) == ("Succeeded", "hello c")
    assert "purged_at" in running.run("job", "greetings/child").stdout
    assert "purged" in running.run("jobs", "--archived").stdout.splitlines()[0]
    why = running.run("why", "greetings/child")
    assert why.exit_code == 0
    assert "- It ended as Succeeded at 2" in why.stdout


def enqueue_family(running: Installation, marker: Path, release: Path) -> None:
    payload = f'{{"marker": "{marker}", "release": "{release}"}}'
    running.run("enqueue", "block", "--queue", "naps", "--key", "slow", "--payload", payload)
    running.run("enqueue", "greet", "--queue", "greetings", "--key", "quick", "--payload", '{"name": "q"}')
    done = running.run(
        *("enqueue", "greet", "--queue", "greetings", "--key", "child", "--payload", '{"name": "c"}'),
        *("--parent", "naps/slow", "--parent", "greetings/quick"),
    )
    assert done.exit_code == 0, done.output


def logged_types(running: Installation, job_id: str) -> list[object]:
    return types(history(running, job_id, "--from-log"))


def test_a_job_that_the_log_does_not_tell_of_is_not_found(running: Installation) -> None:
    result = running.run("history", "default/never-there", "--from-log")
    assert (result.exit_code, result.stdout) == (1, "NotFound\n")
    assert "tells nothing" in result.stderr


def test_a_schedule_of_the_same_name_is_not_the_job(running: Installation) -> None:
    """Both stand in the log under that id."""
    put(running, Schedule("greetings/namesake", "0 0 1 1 *", "greet", {"name": "Ann"}))
    refused = running.run("history", "greetings/namesake", "--from-log")
    assert (refused.exit_code, refused.stdout) == (1, "NotFound\n")
    running.run("enqueue", "later", "--queue", "greetings", "--key", "namesake", "--delay", "3600")
    assert logged_types(running, "greetings/namesake") == ["enqueued"]
