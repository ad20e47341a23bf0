"""Roles as processes: they share the embedded services, end gracefully on a signal, leave nothing behind."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from tests.cli.running import SECONDS, Installation, Process


def wait_for_file(path: Path) -> None:
    """Wait until a handler has made its mark."""
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was never made"
        os.sched_yield()


def wait_until_gone(pid: int) -> None:
    """Wait until no process has that number (a zombie of another parent counts as gone)."""
    deadline = time.monotonic() + SECONDS
    while _is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        os.sched_yield()


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def state_of(installation: Installation, job_id: str) -> object:
    """A job's state, as Postgres has it."""
    found = installation.json("job", job_id)
    assert isinstance(found, dict)
    return found["state"]


def nap(installation: Installation, key: str, seconds: float) -> Path:
    """A job that runs for so long; the file that it makes when it begins."""
    marker = installation.folder / key
    payload = f'{{"marker": "{marker}", "seconds": {seconds}}}'
    done = installation.run("enqueue", "nap", "--queue", "naps", "--key", key, "--payload", payload)
    assert done.exit_code == 0, done.output
    return marker


def test_separate_roles_share_the_embedded_services(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    with (
        installation.start("engine") as engine,
        installation.start("projector") as projector,
        installation.start("worker", "shop:app", "--queues", "naps,greetings") as worker,
    ):
        engine.expect("are served")
        worker.expect("serves naps, greetings")
        projector.expect("a projector starts")
        wait_for_file(nap(installation, "short", 0.0))
        roles = (worker, engine, projector)
        for role in roles:
            role.signal(signal.SIGTERM)
        assert [role.end() for role in roles] == [0, 0, 0]
        assert "Traceback" not in "".join(line for role in roles for line in role.said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_jobs_finish(installation: Installation, number: signal.Signals) -> None:
    with installation.start("up", "shop:app") as process:
        process.expect("Tidelog is up")
        wait_for_file(nap(installation, "nap", 0.5))
        process.signal(number)
        assert process.end() == 0
    # What the worker reported in its last second was decided and projected before the end.
    assert state_of(installation, "naps/nap") == "Succeeded"


def block(installation: Installation, key: str) -> tuple[Path, Path]:
    """A job that blocks its event loop: the file that it makes first, and the one that it waits for."""
    marker, release = installation.folder / key, installation.folder / f"{key}-release"
    payload = f'{{"marker": "{marker}", "release": "{release}"}}'
    done = installation.run("enqueue", "block", "--queue", "naps", "--key", key, "--payload", payload)
    assert done.exit_code == 0, done.output
    return marker, release


def test_a_stop_is_heard_while_a_handler_blocks_the_loop(installation: Installation) -> None:
    with installation.start("up", "shop:app", "--lease-seconds", "1") as process:
        process.expect("Tidelog is up")
        marker, release = block(installation, "blocker")
        wait_for_file(marker)
        process.signal(signal.SIGTERM)
        process.expect("The worker stops: 1 jobs run")
        release.touch()
        assert process.end() == 0
    with installation.start("up", "shop:app") as process:
        process.expect("Tidelog is up")
        assert state_of(installation, "naps/blocker") == "Succeeded"


def test_a_handler_that_blocks_the_loop_does_not_hold_up_the_roles_beside_it(
    installation: Installation,
) -> None:
    with installation.start("up", "shop:app", "--lease-seconds", "1") as process:
        process.expect("Tidelog is up")
        marker, release = block(installation, "blocker")
        wait_for_file(marker)
        # The engine decides and the projector projects all the while; three times over the lease, too.
        for number in range(3):
            installation.run("enqueue", "greet", "--queue", "later", "--key", f"k{number}", "--delay", "1")
        deadline = time.monotonic() + 3.5
        while time.monotonic() < deadline:
            assert state_of(installation, "naps/blocker") == "Leased"
        release.touch()
        found = installation.json("history", "naps/blocker")
        process.signal(signal.SIGTERM)
        assert process.end() == 0
        assert "is lost" not in "".join(process.said), found


def test_what_does_not_finish_in_time_is_given_back(installation: Installation) -> None:
    with installation.start("up", "shop:app", "--grace-seconds", "0.1") as process:
        process.expect("Tidelog is up")
        wait_for_file(nap(installation, "long", 3600))
        process.signal(signal.SIGTERM)
        assert process.end() == 0
    assert state_of(installation, "naps/long") == "Scheduled"


def test_a_handler_that_swallows_its_cancellation_does_not_hold_the_process(
    installation: Installation,
) -> None:
    with installation.start("up", "shop:app", "--grace-seconds", "0.5") as process:
        process.expect("Tidelog is up")
        marker = installation.folder / "stubborn"
        payload = f'{{"marker": "{marker}"}}'
        installation.run("enqueue", "stubborn", "--queue", "naps", "--key", "s", "--payload", payload)
        wait_for_file(marker)
        process.signal(signal.SIGTERM)
        assert process.end() == 0
    with installation.start("up", "shop:app", "--queues", "later") as process:
        process.expect("Tidelog is up")
        assert state_of(installation, "naps/s") == "Scheduled"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_hurries(installation: Installation, number: signal.Signals) -> None:
    with installation.start("up", "shop:app", "--grace-seconds", "3600") as process:
        process.expect("Tidelog is up")
        wait_for_file(nap(installation, "long", 3600))
        process.signal(number)
        process.expect("stopping; once more to hurry")
        process.signal(number)
        process.expect("stopping at once")
        assert process.end() == 128 + number


def test_up_makes_what_is_not_there_and_stops_the_embedded_postgres(installation: Installation) -> None:
    with installation.start("up", "shop:app") as process:
        process.expect("Tidelog is up")
        pid_file = installation.folder / "postgres" / "data" / "postmaster.pid"
        server = int(pid_file.read_text(encoding="utf-8").partition("\n")[0])
        process.signal(signal.SIGINT)
        assert process.end() == 0
        assert not pid_file.exists()
        wait_until_gone(server)


def worker_processes(worker: Process, count: int) -> list[int]:
    """The numbers of the processes that a worker with `--processes` has started, from what they say."""
    return [
        int(found[1])
        for _ in range(count)
        if (found := re.search(r"Worker \S+?-(\d+)-[0-9a-f]{12} serves", worker.expect("serves")))
    ]


def test_a_worker_of_several_processes_ends_as_one(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    with (
        installation.start("engine"),
        installation.start("projector"),
        installation.start("worker", "shop:app", "--processes", "2") as worker,
    ):
        pids = worker_processes(worker, 2)
        assert len(set(pids)) == 2
        os.kill(pids[0], signal.SIGKILL)
        worker.expect("was killed by signal 9")
        [replacement] = worker_processes(worker, 1)
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0
        for pid in (pids[1], replacement):
            wait_until_gone(pid)


def test_processes_end_with_a_parent_that_is_killed(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    with installation.start("engine"), installation.start("worker", "shop:app", "--processes", "2") as worker:
        pids = worker_processes(worker, 2)
        worker.signal(signal.SIGKILL)
        worker.end()
        for pid in pids:
            wait_until_gone(pid)


def test_processes_that_give_up_end_their_parent(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    with installation.start("worker", "shop:app", "--processes", "2", "--queues", "no queue") as worker:
        assert worker.end() == 2
        assert "Traceback" not in "".join(worker.said)


def test_a_postgres_that_never_comes_up_is_named_and_not_a_traceback(installation: Installation) -> None:
    variables = {**installation.variables, "TIDELOG_POSTGRES": "postgresql://ann:s3cret@127.0.0.1:1/jobs"}
    assert installation.run("init").exit_code == 0
    with Installation(installation.folder, variables).start("projector") as projector:
        projector.expect("waiting for Postgres")
        projector.signal(signal.SIGTERM)
        assert projector.end() == 0
        said = "".join(projector.said)
        assert "ann@127.0.0.1:1/jobs" in said
        assert "s3cret" not in said
        assert "Traceback" not in said
