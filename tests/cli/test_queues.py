"""Pausing, resuming and limiting queues, and looking at them."""

from __future__ import annotations

from tests.cli.running import Installation


def queue(running: Installation, name: str) -> dict[str, object]:
    """What `tidelog queues` says of one queue."""
    found = running.json("queues")
    assert isinstance(found, dict)
    [named] = [entry for entry in found["queues"] if entry["queue"] == name]
    assert isinstance(named, dict)
    return named


def test_a_queue_is_paused_and_resumed(running: Installation) -> None:
    done = running.run("pause", "stopped", "--actor", "ann")
    assert (done.exit_code, done.stdout) == (0, "Ok\n")
    assert queue(running, "stopped")["paused"] is True
    assert queue(running, "stopped")["paused_by"] == "ann"
    assert "by ann" in running.run("queues").stdout
    assert running.json("resume", "stopped") == {"result": "Ok", "queue": "stopped"}
    assert queue(running, "stopped")["paused"] is False


def test_a_queue_is_limited_and_freed(running: Installation) -> None:
    assert running.json("limit", "narrow", "3") == {"result": "Ok", "queue": "narrow", "limit": 3}
    assert queue(running, "narrow")["concurrency_limit"] == 3
    assert running.json("limit", "narrow", "none") == {"result": "Ok", "queue": "narrow", "limit": None}
    assert queue(running, "narrow")["concurrency_limit"] is None


def test_depths_are_counted_by_state(running: Installation) -> None:
    for number in range(3):
        running.run("enqueue", "w", "--queue", "deep", "--key", f"n{number}", "--delay", "3600")
    running.run("cancel", "deep/n0")
    depths = queue(running, "deep")["depths"]
    assert depths == {
        "Scheduled": 2,
        "AwaitingParent": 0,
        "Leased": 0,
        "Succeeded": 0,
        "Cancelled": 1,
        "DeadLettered": 0,
        "Quarantined": 0,
    }


def test_an_actor_with_control_characters_is_shown_harmlessly(running: Installation) -> None:
    running.run("pause", "hushed", "--actor", "\x1b[2Jann")
    shown = running.run("queues").stdout
    assert "\x1b" not in shown
    assert r"by \x1b[2Jann" in shown
