"""The other process in the tests of the SQLite log: `python child.py ROLE PATH ARGUMENTS`.

It says what it has done on its standard output, one line each, and is mostly killed.
"""

from __future__ import annotations

import asyncio
import resource
import sys

from tidelog.log.port import LogError, NewRecord, TopicPartition
from tidelog.log.sqlite import SqliteLog

SECONDS = 20.0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def append_for_ever(log: SqliteLog, name: str) -> None:
    """Append transactions over two topics and three partitions; say each one that is acknowledged."""
    writer = await log.writer(name)
    number = 0
    while True:
        value = f"{name}-{number}".encode()
        padding = b"x" * (number * 7919 % 5_000)
        await writer.append(
            [
                NewRecord("events", 0, value, padding),
                NewRecord("events", 1, value, padding),
                NewRecord("events", 1, value, padding),
                NewRecord("state", 0, value, padding),
            ],
            timeout=SECONDS,
        )
        say(value.decode())
        number += 1


async def echo(log: SqliteLog) -> None:
    """Answer each record of ping on pong."""
    ping = TopicPartition("ping", 0)
    reader = await log.reader({ping: await log.end_offset(ping)})
    producer = await log.producer()
    say("ready")
    while True:
        for record in await reader.read(max_records=100, timeout=SECONDS):
            await producer.append([NewRecord("pong", 0, record.key, record.value)], timeout=SECONDS)


async def be_a_member(log: SqliteLog, *, frozen: bool) -> None:
    """Join a group, and stay: by waiting, or with an event loop that is blocked."""
    member = await log.join("group", "events")
    await member.changed(timeout=SECONDS)
    say("joined")
    if frozen:
        sys.stdin.read()
    while True:
        await member.changed(timeout=SECONDS)


async def fill_the_disk(log: SqliteLog) -> None:
    """Append until a file may not grow any more; then, when it may again, once more."""
    producer = await log.producer()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    count = 0
    try:
        while True:
            await producer.append([NewRecord("events", 0, b"key", b"x" * 10_000)], timeout=SECONDS)
            count += 1
    except LogError as error:
        say(f"{count} {type(error).__name__}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await producer.append([NewRecord("events", 0, b"key", b"after")], timeout=SECONDS)
    say("recovered")


async def main(role: str, path: str, *arguments: str) -> None:
    log = await SqliteLog.open(path)
    if role == "append":
        await append_for_ever(log, *arguments)
    elif role == "echo":
        await echo(log)
    elif role == "member":
        await be_a_member(log, frozen=False)
    elif role == "frozen-member":
        await be_a_member(log, frozen=True)
    elif role == "fill":
        await fill_the_disk(log)
    await log.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
