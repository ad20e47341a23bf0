"""The file: what it may be, and what is said about one that cannot be a log."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest
from tests.conformance.cluster import append, read_to_end, record, values

from tidelog.log.port import LogError, TopicPartition, TopicSpec
from tidelog.log.sqlite import LogFileError, SqliteLog


async def test_folders_are_created(tmp_path: Path) -> None:
    path = tmp_path / "not" / "yet" / "there" / "log.db"
    async with await SqliteLog.open(path) as log:
        assert log.address == f"sqlite:{path}"
        assert await log.create_topics([TopicSpec("events", 1)]) == ["events"]
    assert path.is_file()


async def test_everything_outlives_the_last_connection(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with await SqliteLog.open(path) as log:
        await log.create_topics([TopicSpec("events", 1)])
        await append(log, record("events", "kept"))
    async with await SqliteLog.open(path) as log:
        assert values(await read_to_end(log, "events")) == ["kept"]


async def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    logs = await asyncio.gather(*(SqliteLog.open(tmp_path / "log.db") for _ in range(6)))
    created = await asyncio.gather(*(log.create_topics([TopicSpec("events", 3)]) for log in logs))
    assert sorted(created) == [[]] * 5 + [["events"]]
    await asyncio.gather(*(log.close() for log in logs))


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    text = "Dear Ann, this is no database at all. " * 100
    path.write_text(text)
    with pytest.raises(LogFileError, match="no SQLite file"):
        await SqliteLog.open(path)
    assert path.read_text() == text


async def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE customers (name)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(LogFileError, match="something else"):
        await SqliteLog.open(path)
    assert path.read_bytes() == before


async def test_a_log_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await (await SqliteLog.open(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LogFileError, match=r"version 99.*update"):
        await SqliteLog.open(path)


async def test_a_log_of_version_1_is_brought_up_to_date_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with await SqliteLog.open(path) as log:
        await log.create_topics([TopicSpec("events", 1)])
        member = await log.join("group", "events")
        await member.commit({0: 7}, timeout=10)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE group_offsets DROP COLUMN note")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    for note in ("it fails", "it fails again"):  # the second time there is nothing to bring up to date
        async with await SqliteLog.open(path) as log:
            member = await log.join("group", "events")
            assert await member.committed(0) == 7
            await member.commit({0: 7}, timeout=10, notes={0: note})
            [group] = await log.groups("group")
            assert list(group.notes.values()) == [note]


async def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with await SqliteLog.open(path) as log:
        await log.create_topics([TopicSpec("events", 3)])
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(LogFileError, match="damaged"):
        async with await SqliteLog.open(path) as log:
            await log.end_offset(TopicPartition("events", 0))


async def test_a_path_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match="is a folder"):
        await SqliteLog.open(tmp_path)


async def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LogFileError, match=r"folder of the log .* cannot be created"):
        await SqliteLog.open(tmp_path / "file" / "log.db")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that not even root may write")
async def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(LogFileError, match="cannot be written"):
        await SqliteLog.open("/proc/log.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
async def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await (await SqliteLog.open(path)).close()
    path.chmod(0o400)
    with pytest.raises(LogError, match="cannot be written"):
        await SqliteLog.open(path)
