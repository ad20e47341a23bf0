"""The README's first job does what the README says."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.running import SECONDS, Process
from tests.providers.postgres import server_folder

README = Path(__file__).parents[2] / "README.md"


def test_the_first_job_of_the_readme_runs_as_it_stands_there() -> None:
    text = README.read_text(encoding="utf-8")
    application, script = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (promised,) = re.findall(r"python enqueue\.py +# (.*)", text)
    with server_folder() as folder:
        (folder / "shop.py").write_text(application, encoding="utf-8")
        (folder / "enqueue.py").write_text(script, encoding="utf-8")
        with Process.start(["up", "shop:app"], folder, {}) as up:
            up.expect("Tidelog is up")
            for _ in range(2):  # the keys make it the same two invoices the second time
                ran = subprocess.run(
                    [sys.executable, "enqueue.py"],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                    check=False,
                )
                assert (ran.stdout.strip(), ran.stderr) == (promised, "")
            up.signal(signal.SIGTERM)
            assert up.end() == 0
