"""`tidelog observe`, `tidelog observers`, and observers beside the other roles of `tidelog up`."""

from __future__ import annotations

import asyncio
import signal
import time

from tests.cli.running import SECONDS, Installation
from tests.observer.stage import START

from tidelog.log.address import open_log
from tidelog.log.port import NewRecord, TopicPartition
from tidelog.log.topics import Topics
from tidelog.observer.dead_letters import DeadLetter


def status(installation: Installation, observer_id: str = "watch") -> dict[str, object]:
    """What `tidelog observers` says of one observer."""
    found = installation.json("observers")
    assert isinstance(found, dict)
    [observer] = [one for one in found["observers"] if one["observer"] == observer_id]
    assert isinstance(observer, dict)
    return observer


def wait_for(installation: Installation, expected: dict[str, object]) -> dict[str, object]:
    """Wait until it says so."""
    deadline = time.monotonic() + SECONDS
    while not expected.items() <= (found := status(installation)).items():
        assert time.monotonic() < deadline, found
    return found


def put_dead_letter(installation: Installation, event: bytes) -> None:
    """A letter as the observer would have written it."""
    letter = DeadLetter("watch", event, 0, 0, 0, "ValueError: no", "ValueError: no", 10, START)

    async def put() -> None:
        async with await open_log(installation.variables["TIDELOG_LOG"]) as log:
            producer = await log.producer()
            record: NewRecord = letter.record(TopicPartition(Topics().observer_dead_letters, 0))
            await producer.append([record], timeout=SECONDS)

    asyncio.run(put())


def leave_off_failing(installation: Installation, note: str) -> None:
    """What a process of the observer commits that cannot get past the first event there is."""

    async def commit() -> None:
        topics = Topics()
        async with await open_log(installation.variables["TIDELOG_LOG"]) as log:
            member = await log.join(topics.observer_group("watch"), topics.transitions)
            assert await member.changed(timeout=SECONDS)
            await member.commit(
                dict.fromkeys(member.assignment, 0),
                notes=dict.fromkeys(member.assignment, note),
                timeout=SECONDS,
            )

    asyncio.run(commit())


def test_up_runs_observers_and_their_state_is_shown(running: Installation) -> None:
    done = running.run("enqueue", "greet", "--queue", "seen-by-nobody", "--payload", '{"name": "ann"}')
    assert done.exit_code == 0
    found = wait_for(running, {"observer": "watch", "lag_events": 0, "processes": 1, "dead_letters": 0})
    assert found["lag_seconds"] == 0
    assert "watch" in running.run("observers").stdout.splitlines()[-1]


def test_an_observer_that_blocks_holds_up_nobody(running: Installation) -> None:
    """Neither the engine nor the worker nor the other observer, although all of them are one process."""
    assert running.run("enqueue", "greet", "--queue", "sticky", "--key", "blocks").exit_code == 0
    deadline = time.monotonic() + SECONDS
    while not (running.folder / "stuck").exists():
        assert time.monotonic() < deadline
    running.run(
        "enqueue", "greet", "--key", "goes-on", "--payload", '{"name": "ann"}', "--queue", "greetings"
    )
    while "Succeeded" not in running.run("job", "greetings/goes-on").stdout:
        assert time.monotonic() < deadline
    wait_for(running, {"lag_events": 0})
    blocked = status(running, "stuck")
    assert (blocked["processes"], blocked["dead_letters"]) == (1, 0)
    assert blocked["lag_events"] != 0


def test_a_role_of_its_own_tells_what_happened_and_redrives(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    watched = installation.folder / "watched.txt"
    with (
        installation.start("observe", "shop:app", "--observer", "watch") as observe,
        installation.start("engine"),
        installation.start("worker", "shop:app", "--queues", "watched"),
    ):
        observe.expect("begins partitions 0-2 at offset 0")
        installation.run(
            "enqueue", "greet", "--queue", "watched", "--key", "a", "--payload", '{"name": "ann"}'
        )
        deadline = time.monotonic() + SECONDS
        while not watched.exists() or not watched.read_text():
            assert time.monotonic() < deadline
        assert watched.read_text() == "watched/a {'name': 'ann'}\n"

        put_dead_letter(installation, b"{")
        assert status(installation)["last_error"] == "ValueError: no"
        doctor = installation.run("doctor", "--only", "observers").stdout
        assert "watch has given up on 1 event" in doctor
        answer = {"result": "Ok", "observer": "watch", "dead_letters": 1}
        assert installation.json("observers", "redrive", "watch", "--actor", "ann") == answer
        # It still cannot be read, and is a letter again.
        observe.expect("dead letters up to offset 0 are redriven for ann")
        observe.expect("becomes a dead letter")
        refused = installation.run("observers", "forget", "watch")
        assert (refused.exit_code, refused.stdout) == (1, "Running\n")
        observe.signal(signal.SIGTERM)
        assert observe.end() == 0
    assert status(installation)["processes"] == 0
    leave_off_failing(installation, "try 2 failed: ValueError: no")
    assert "try 2 failed: ValueError: no" in installation.run("observers").stdout.replace("\n", " ")
    positions = status(installation)["positions"]
    assert isinstance(positions, list)
    # Where there is nothing to be told, nothing can fail.
    failing = {(one["failing"], one["lag_events"] > 0) for one in positions}
    assert failing == {("try 2 failed: ValueError: no", True), (None, False)}
    answer = {"result": "Ok", "observer": "watch", "next_offsets": [0, 0, 0]}
    assert installation.json("observers", "seek", "watch", "beginning") == answer
    assert installation.run("observers", "seek", "watch", "tomorrow").exit_code == 2
    forgotten = installation.run("observers", "forget", "watch")
    assert (forgotten.exit_code, forgotten.stdout) == (0, "Ok\n")
    assert "begins at its declared start" in forgotten.stderr
    assert installation.json("observers") == {"observers": []}
    gone = installation.run("observers", "forget", "watch")
    assert (gone.exit_code, gone.stdout) == (1, "NotFound\n")


def test_what_is_wrong_is_said(installation: Installation) -> None:
    with installation.start("observe", "shop:app", "--observer", "watcher") as unknown:
        unknown.expect("declares no observer 'watcher'. There are: watch")
        assert unknown.end() == 2
    assert installation.run("init").exit_code == 0
    assert installation.json("observers") == {"observers": []}
    never = installation.run("observers", "redrive", "watch")
    assert (never.exit_code, never.stdout) == (1, "NotFound\n")
