"""A torture run from the command line, as long as one likes.

    python -m tests.torture --seconds 600 --seed 42

Exit code 0 only when no rule was broken. What the roles said, and the journals, stay in the folder it names.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import secrets
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from tests.providers.kafka import running_own_kafka
from tests.torture.gathering import NeverSettled
from tests.torture.house import running_postgres
from tests.torture.report import table
from tests.torture.run import Torture, torture

_SHOWN = 50


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of load and faults")
    parser.add_argument("--seed", type=int, help="of the faults and the load; random when absent")
    parser.add_argument("--settle-seconds", type=float, default=120.0, help="within which all must be over")
    parser.add_argument("--log", choices=("kafka", "sqlite"), default="kafka")
    given = parser.parse_args()
    seed = secrets.randbelow(1_000_000_000) if given.seed is None else given.seed
    folder = Path(tempfile.mkdtemp(prefix="tidelog-torture-"))
    console = Console()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it has a lot to say while a broker is away
    console.print(f"{given.seconds:g} s on {given.log}, --seed {seed}; journals and logs: {folder}")
    how = Torture(seed, given.seconds, settle_seconds=given.settle_seconds)
    with ExitStack() as stack:
        broker = None
        if given.log == "kafka":
            (folder / "broker").mkdir()
            broker = stack.enter_context(running_own_kafka(folder / "broker"))
        postgres = stack.enter_context(running_postgres())
        try:
            outcome = asyncio.run(torture(how, folder, postgres, broker))
        except NeverSettled as error:
            console.print(str(error), markup=False)
            return 1
    console.print(table(f"Torture on {given.log}, --seed {seed}", outcome))
    for problem in outcome.audit.problems[:_SHOWN]:
        console.print(problem, markup=False)
    return 1 if outcome.audit.problems else 0


if __name__ == "__main__":
    sys.exit(main())
