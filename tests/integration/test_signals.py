"""The installed `tidelog` command as a container starts it, and as it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest
from tests.integration.outsider import SECONDS, Commander, Events
from tests.integration.site import Site

TIDELOG = Path(sys.executable).with_name("tidelog")


def wait_for_file(path: Path) -> None:
    """Wait until a handler has made its mark."""
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was never made"
        os.sched_yield()


@pytest.mark.parametrize(
    "wrapper",
    [pytest.param([], id="exec form"), pytest.param(["sh", "-c", 'exec "$0" "$@"'], id="shell with exec")],
)
def test_a_stopped_worker_finishes_its_job(
    site: Site, commander: Commander, events: Events, tmp_path: Path, wrapper: list[str]
) -> None:
    queue, begun, go_on = f"naps-{uuid4().hex}", tmp_path / "begun", tmp_path / "go-on"
    job_id = f"{queue}/nap"
    payload = {"marker": str(begun), "until": str(go_on)}
    commander.send({"type": "enqueue", "job_id": job_id, "wire_name": "nap", "payload": payload}, key=queue)
    with subprocess.Popen(
        [*wrapper, str(TIDELOG), "worker", "shop:app", "--queues", queue],
        cwd=site.installation.folder,
        env={**os.environ, **site.installation.variables},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            wait_for_file(begun)
            worker.send_signal(signal.SIGTERM)
            assert worker.stderr is not None
            assert any("SIGTERM: stopping" in line for line in worker.stderr)
            go_on.touch()  # the job ends only after the signal has come
            assert worker.wait(SECONDS) == 0
        finally:
            worker.kill()
    ended = events.until_type(job_id, "succeeded")
    assert (ended.get("output"), ended.get("attempt")) == ("rested", 1)
