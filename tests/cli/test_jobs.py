"""Enqueueing, looking, cancelling and requeueing, on a running installation."""

from __future__ import annotations

import asyncio
import getpass
import time

import orjson
from tests.cli.running import SECONDS, Installation

from tidelog import App
from tidelog.settings import Settings


def record(running: Installation, job_id: str) -> dict[str, object]:
    """The JobRecord that `tidelog job` prints."""
    found = running.json("job", job_id)
    assert isinstance(found, dict)
    return found


def wait_for_end(running: Installation, job_id: str) -> dict[str, object]:
    """The record of a job once it has ended."""
    deadline = time.monotonic() + SECONDS
    while (found := record(running, job_id))["terminal_at"] is None:
        assert time.monotonic() < deadline, found
    return found


def step_types(running: Installation, job_id: str) -> list[str]:
    """What has happened to a job so far, as `tidelog history` has it."""
    found = running.json("history", job_id)
    assert isinstance(found, dict)
    return [step["type"] for step in found["transitions"]]


def test_a_job_runs_and_is_shown(running: Installation) -> None:
    done = running.run(
        *("enqueue", "greet", "--queue", "greetings", "--key", "ann", "--payload", '{"name": "ann"}'),
        *("--tag", "urgent", "--tag", "customer=42"),
    )
    assert (done.exit_code, done.stdout) == (0, "greetings/ann\n")
    found = wait_for_end(running, "greetings/ann")
    assert found["state"] == "Succeeded"
    assert found["output"] == "hello ann"
    assert found["tags"] == ["urgent", {"customer": "42"}, {"greeted": "ann"}]
    shown = running.run("job", "greetings/ann").stdout
    assert "Succeeded" in shown
    assert "urgent customer=42 greeted=ann" in shown


def test_a_retry_policy_can_be_said(running: Installation) -> None:
    running.run("enqueue", "later", "--key", "stubborn", "--max-attempts", "3", "--delays", "1,2.5")
    running.run("enqueue", "later", "--key", "hopeful", "--delays", "60")
    assert record(running, "default/stubborn")["retry"] == {"max_attempts": 3, "delays": [1, 2.5]}
    assert record(running, "default/hopeful")["retry"] == {"max_attempts": 10, "delays": [60]}


def test_an_enqueue_of_the_same_key_is_the_same_job(running: Installation) -> None:
    arguments = ("enqueue", "later", "--key", "same", "--delay", "3600")
    assert running.json(*arguments) == running.json(*arguments) == {"result": "Ok", "job_id": "default/same"}


def test_numbers_of_any_size_are_kept(running: Installation) -> None:
    number = "123456789012345678901234567890"
    running.run("enqueue", "later", "--key", "big", "--delay", "3600", "--payload", number)
    result = running.run("job", "default/big", "--json")
    assert f'"payload":{number},' in result.stdout


def test_a_child_waits_for_its_parent_and_reads_its_output(running: Installation) -> None:
    running.run("enqueue", "greet", "--queue", "greetings", "--key", "bob", "--payload", '{"name": "bob"}')
    done = running.run(
        *("enqueue", "twice", "--queue", "greetings", "--key", "after-bob", "--parent", "greetings/bob"),
        *("--mode", "OnAnyTerminal", "--payload", '{"parent": "greetings/bob"}'),
    )
    assert done.exit_code == 0, done.output
    found = wait_for_end(running, "greetings/after-bob")
    assert (found["state"], found["output"]) == ("Succeeded", "hello bobhello bob")
    assert found["parents"] == [{"job_id": "greetings/bob", "state": "Succeeded"}]
    assert (found["children"], record(running, "greetings/bob")["children"]) == (0, 1)
    assert "greetings/bob (Succeeded)" in running.run("job", "greetings/after-bob").stdout


def test_a_read_shows_what_was_done_before(running: Installation) -> None:
    """Without a wait in between: the projection is waited for."""
    for number in range(5):
        running.run("enqueue", "later", "--queue", "fresh", "--key", f"n{number}", "--delay", "3600")
        assert record(running, f"fresh/n{number}")["state"] == "Scheduled"
        running.run("cancel", f"fresh/n{number}")
        assert record(running, f"fresh/n{number}")["state"] == "Cancelled"


def test_the_due_time_is_read_with_its_zone(running: Installation) -> None:
    running.run("enqueue", "later", "--key", "due", "--due", "2999-01-01T02:00:00+02:00")
    assert record(running, "default/due")["due_time"] == "2999-01-01T00:00:00Z"


def test_a_cancel_names_its_actor(running: Installation) -> None:
    for key, arguments in {"by-ann": ["--actor", "ann"], "by-me": []}.items():
        running.run("enqueue", "later", "--key", key, "--delay", "3600")
        done = running.run("cancel", f"default/{key}", *arguments)
        assert (done.exit_code, done.stdout) == (0, "CancelledImmediately\n")
    assert record(running, "default/by-ann")["terminal_cause"] == "ann"
    assert record(running, "default/by-me")["terminal_cause"] == getpass.getuser()


def test_refusals_print_their_result_and_exit_with_1(running: Installation) -> None:
    big = orjson.dumps("x" * 65_537).decode()
    for arguments, result in (
        (["cancel", "default/no-such-job"], "NotCancellable"),
        (["requeue", "default/no-such-job"], "NotRequeueable"),
        (["cancel", "no id"], "Invalid"),
        (["enqueue", "w", "--queue", "no queue"], "Invalid"),
        (["enqueue", "w", "--parent", "default/no-such-job"], "UnknownParent"),
        (["enqueue", "w" * 129], "WireNameTooLong"),
        (["enqueue", "w", "--payload", big], "PayloadTooLarge"),
        (["enqueue", "w", *(f"--parent=default/{number}" for number in range(17))], "TooManyParents"),
        (["job", "default/no-such-job"], "NotFound"),
        (["history", "default/no-such-job"], "NotFound"),
        (["job", "no id"], "Invalid"),
        (["jobs", "--queue", "no queue"], "Invalid"),
        (["limit", "greetings", "0"], "Invalid"),
        (["pause", "no queue"], "Invalid"),
    ):
        done = running.run(*arguments)
        assert (done.exit_code, done.stdout) == (1, f"{result}\n"), done.stderr
        for_programs = running.run(*arguments, "--json")
        told = orjson.loads(for_programs.stdout)
        assert (for_programs.exit_code, told["result"]) == (1, result)
        assert told["message"].strip()
        assert "Traceback" not in done.stderr


def test_hostile_texts_are_shown_harmlessly(running: Installation) -> None:
    """The escape, the markup and the line break of a failing handler, of a wire name and of a tag."""
    name = orjson.dumps({"name": "\x1b[31mred"}).decode()
    running.run("enqueue", "greet", "--queue", "greetings", "--key", "hostile", "--payload", name)
    deadline = time.monotonic() + SECONDS
    while "retry_scheduled" not in step_types(running, "greetings/hostile"):
        assert time.monotonic() < deadline
    running.run(
        *("enqueue", "\x1b]0;title\x07[red]w[/red]", "--queue", "hostile", "--key", "k", "--delay", "3600"),
        *("--tag", "a\nb", "--tag", "[link=x]y"),
    )
    for arguments in (
        ["jobs", "--queue", "greetings"],
        ["jobs", "--queue", "hostile"],
        ["job", "greetings/hostile"],
        ["job", "hostile/k"],
        ["history", "greetings/hostile"],
    ):
        shown = running.run(*arguments).stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown
    failed = record(running, "greetings/hostile")["last_error"]
    assert isinstance(failed, dict)
    assert (failed["attempt"], failed["error"].splitlines()[-1]) == (1, "second line")
    shown = running.run("jobs", "--queue", "hostile").stdout
    assert r"\x1b]0;title\x07[red]w[/red]" in shown
    assert r"a\nb" in shown
    assert len(shown.splitlines()) == 2
    assert (
        r"ValueError: no [bold]\x1b[31mred[/bold]\nsecond line"
        in running.run("history", "greetings/hostile").stdout
    )


def test_a_quarantined_job_starts_again(running: Installation) -> None:
    running.run("enqueue", "\x1b[2Jnobody", "--queue", "greetings", "--key", "again")
    found = wait_for_end(running, "greetings/again")
    assert found["terminal_cause"] == "no handler registered for wire name '\x1b[2Jnobody'"
    assert r"no handler registered for wire name '\x1b[2Jnobody'" in running.run("jobs").stdout
    done = running.run("requeue", "greetings/again", "--actor", "ann")
    assert (done.exit_code, done.stdout) == (0, "Requeued\n")
    wait_for_end(running, "greetings/again")
    assert step_types(running, "greetings/again") == [
        *("enqueued", "leased", "quarantined"),
        *("requeued", "leased", "quarantined"),
    ]


def test_pages_go_on_where_they_stopped(running: Installation) -> None:
    for number in range(5):
        running.run("enqueue", "paged", "--queue", "pages", "--key", f"n{number}", "--delay", "3600")
    seen: list[str] = []
    arguments = ["jobs", "--wire-name", "paged", "--state", "Scheduled", "--limit", "2"]
    after: list[str] = []
    while True:
        page = running.json(*arguments, *after)
        assert isinstance(page, dict)
        seen += [job["job_id"] for job in page["jobs"]]
        if page["after"] is None:
            break
        after = ["--after", page["after"]]
    assert sorted(seen) == [f"pages/n{number}" for number in range(5)]
    more = running.run(*arguments)
    assert "--after" in more.stderr
    other = running.run("jobs", *after)
    assert other.exit_code == 2
    assert "other filters" in other.stderr


def test_the_worker_is_listed_with_what_it_did(running: Installation) -> None:
    running.run("enqueue", "greet", "--queue", "greetings", "--key", "eve", "--payload", '{"name": "eve"}')
    wait_for_end(running, "greetings/eve")
    found = running.json("workers")
    assert isinstance(found, dict)
    [worker] = found["workers"]
    assert worker["succeeded"] >= 1
    assert worker["worker_id"] in running.run("workers").stdout


def test_jobs_are_found_by_tag(running: Installation) -> None:
    running.run("enqueue", "w", "--queue", "tags", "--key", "a", "--delay", "3600", "--tag", "colour=red")
    running.run("enqueue", "w", "--queue", "tags", "--key", "b", "--delay", "3600", "--tag", "colour")
    for tag, job_id in (("colour=red", "tags/a"), ("colour", "tags/b")):
        page = running.json("jobs", "--tag", tag)
        assert isinstance(page, dict)
        assert [job["job_id"] for job in page["jobs"]] == [job_id]


def test_a_tag_is_found_as_it_is_shown_be_it_a_pair_or_a_label(running: Installation) -> None:
    async def enqueue() -> list[str]:
        log, partitions = (running.variables[name] for name in ("TIDELOG_LOG", "TIDELOG_PARTITIONS"))
        app = App(settings=Settings(log=log, partitions=int(partitions)))
        async with app.client() as client:
            pair = await client.enqueue("w", tags=[("size", "9")], queue="spelled", delay=3600)
            label = await client.enqueue("w", tags=["size=9"], queue="spelled", delay=3600)
        return [pair, label]

    ids = asyncio.run(enqueue())
    page = running.json("jobs", "--tag", "size=9")
    assert isinstance(page, dict)
    assert sorted(job["job_id"] for job in page["jobs"]) == sorted(ids)
