"""Several processes on one file: each sees at once what the others write, and none is kept waiting."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest
from tests.conformance.cluster import append, read_count, read_to_end, record, values
from tests.log.conftest import SECONDS, Start

from tidelog.log.port import LogUnavailable, TopicPartition
from tidelog.log.sqlite import SqliteLog
from tidelog.log.sqlite.wake_socket import WakeSocket, folder_of

PONG = TopicPartition("pong", 0)


async def play(log: SqliteLog, rounds: int) -> None:
    """Send a record to the other process and wait for its answer, one round after the other."""
    reader = await log.reader({PONG: 0})
    async with asyncio.timeout(SECONDS):
        for number in range(rounds):
            await append(log, record("ping", str(number)))
            assert values(await read_count(reader, 1)) == [str(number)]


async def test_a_reader_in_another_process_is_woken(log: SqliteLog, start: Start) -> None:
    assert await (await start("echo")).line() == "ready"
    # Two waits a round: the bound leaves less than 50 ms for each of them.
    await play(log, 400)


async def test_a_commit_pokes_the_sockets_of_all_others(log: SqliteLog, path: Path) -> None:
    listener = WakeSocket.bind(path)
    assert listener is not None
    poked = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(listener.fileno(), poked.set)
    try:
        await append(log, record("ping", "look"))
        await asyncio.wait_for(poked.wait(), SECONDS)
        listener.drain()
        assert listener.poke_others() == 1
    finally:
        loop.remove_reader(listener.fileno())
        listener.close()


async def test_processes_that_share_no_sockets_find_out_by_polling(
    log: SqliteLog, start: Start, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert await (await start("echo", environment={**os.environ, "TMPDIR": str(elsewhere)})).line() == "ready"
    await play(log, 50)


async def test_without_any_socket_it_works_as_well(log: SqliteLog, start: Start, tmp_path: Path) -> None:
    too_long = tmp_path / ("x" * 120)
    too_long.mkdir()
    assert await (await start("echo", environment={**os.environ, "TMPDIR": str(too_long)})).line() == "ready"
    await play(log, 50)


async def test_a_folder_of_sockets_that_others_may_enter_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    folder = folder_of(path)
    folder.mkdir()
    folder.chmod(0o777)
    try:
        async with await SqliteLog.open(path):
            assert list(folder.iterdir()) == []
    finally:
        folder.rmdir()


async def test_sockets_of_killed_processes_are_cleared_away(log: SqliteLog, path: Path, start: Start) -> None:
    child = await start("echo")
    await child.line()
    assert len(list(folder_of(path).iterdir())) == 2
    assert folder_of(path).stat().st_mode & 0o777 == 0o700
    await child.kill()
    async with asyncio.timeout(SECONDS):
        while len(list(folder_of(path).iterdir())) > 1:
            await append(log, record("ping", "anybody there?"))


async def test_nothing_is_left_in_the_folder_for_temporary_files(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    one, two = await SqliteLog.open(path), await SqliteLog.open(path)
    assert len(list(folder_of(path).iterdir())) == 2
    await asyncio.gather(one.close(), two.close())
    assert not folder_of(path).exists()


async def test_the_last_to_close_clears_up_after_the_killed(log: SqliteLog, path: Path, start: Start) -> None:
    child = await start("echo")
    await child.line()
    await child.kill()
    await log.close()
    assert not folder_of(path).exists()


async def test_a_busy_process_does_not_starve_another(log: SqliteLog, start: Start) -> None:
    busy = [await start("append", name) for name in ("a", "b")]
    for child in busy:
        await child.line()
    async with asyncio.timeout(SECONDS):
        for number in range(50):
            await append(log, record("pong", str(number)))
    assert len(await read_to_end(log, "pong")) == 50


async def test_a_lock_that_is_not_released_is_reported_in_time(log: SqliteLog, path: Path) -> None:
    producer, writer = await log.producer(), await log.writer("writer")
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogUnavailable, match="nothing was written"):
            await producer.append([record("ping", "lost")], timeout=0.05)
        with pytest.raises(LogUnavailable, match="nothing was written"):
            await writer.append([record("ping", "lost")], timeout=0.05)
        waiting = asyncio.create_task(producer.append([record("ping", "waited")], timeout=SECONDS))
        assert await read_to_end(log, "ping") == []  # readers wait for nobody
        holder.execute("ROLLBACK")
        await waiting
    finally:
        holder.close()
    await writer.append([record("ping", "after")], timeout=SECONDS)
    assert values(await read_to_end(log, "ping")) == ["waited", "after"]


async def test_closing_does_not_wait_for_ever_for_a_lock(path: Path, log: SqliteLog) -> None:
    another = await SqliteLog.open(path)
    await another.join("group", "events")
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(SECONDS):
            await another.close()
    finally:
        holder.close()
    await append(log, record("ping", "after"))
