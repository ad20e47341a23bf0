"""An observer as a process of its own, for tests that kill it.

`python -m tests.observer.child LOG PREFIX JOURNAL [BLOCK_AT]`: it writes the key of each delivery to the
journal, and blocks for ever in the delivery of that sequence.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from pathlib import Path

from tidelog.app import App
from tidelog.log.address import open_log
from tidelog.log.topics import Topics
from tidelog.observer.context import ObserverContext
from tidelog.observer.observer import Observer


async def main(address: str, prefix: str, journal: Path, block_at: int | None) -> None:
    app = App()

    @app.observer("watch", start="beginning")
    def note(context: ObserverContext) -> None:
        with journal.open("a", encoding="utf-8") as file:
            file.write(f"{context.idempotency_key}\n")
        if context.sequence == block_at:
            threading.Event().wait()

    [definition] = app.observers
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with await open_log(address) as log:
        await Observer(log, Topics(prefix), definition).run(stop)


if __name__ == "__main__":
    _, address, prefix, path, *rest = sys.argv
    asyncio.run(main(address, prefix, Path(path), int(rest[0]) if rest else None))
