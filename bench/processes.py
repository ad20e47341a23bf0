"""The roles as processes of their own, started as a user starts them, and never left running."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from bench.errors import MeasureFailed

_ROOT = Path(__file__).resolve().parent.parent
_STOP_SECONDS = 15.0
_SHOWN_BYTES = 2_000
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def _python_path() -> str:
    """Where roles find the bench's own jobs, and then what the bench itself was told to find."""
    given = os.environ.get("PYTHONPATH")
    return str(_ROOT) if given is None else os.pathsep.join([str(_ROOT), given])


class Role:
    """A role that runs."""

    def __init__(self, name: str, process: Process, words: IO[bytes]) -> None:
        self._name = name
        self._process = process
        self._words = words

    @property
    def cpu_seconds(self) -> float:
        """The processor time that it has used since its start.

        Raises:
            MeasureFailed: it has ended.
        """
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            raise self._gone() from None
        fields = stat.rpartition(")")[2].split()  # a program's name may hold blanks and brackets
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND

    def refuse_end(self) -> None:
        """Raises `MeasureFailed`, with what it said last, if it has ended."""
        if self._process.returncode is not None:
            raise self._gone()

    async def stop(self) -> None:
        """Ask it to stop, and see to it that it does.

        Raises:
            MeasureFailed: it had ended before, had to be killed, or ended with an error.
        """
        self.refuse_end()
        self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            raise MeasureFailed(f"{self._name} did not stop within {_STOP_SECONDS:g} s of SIGTERM") from None
        if self._process.returncode != 0:
            raise self._gone()

    async def kill(self) -> None:
        """End it at once if it still runs."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def _gone(self) -> MeasureFailed:
        self._words.seek(0)
        said = self._words.read()[-_SHOWN_BYTES:].decode(errors="replace").strip()
        return MeasureFailed(f"{self._name} ended with code {self._process.returncode}. It said: {said}")


@asynccontextmanager
async def running(name: str, command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Role]:
    """Run a role for as long as the block lasts.

    Args:
        name: for messages.
        command: the arguments of `tidelog`.
        environment: beside this process's own.

    Raises:
        MeasureFailed: it did not live until the end of the block, or did not stop well.

    A cancellation or an error in the block kills it; when this process is killed, it stops by itself.
    """
    with TemporaryFile() as words:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tidelog",
            *command,
            "--lifeline",
            "0",
            env={**os.environ, "PYTHONPATH": _python_path(), **environment},
            stdin=asyncio.subprocess.PIPE,  # held open and never written to: the role's lifeline
            stdout=words,
            stderr=words,
        )
        role = Role(name, process, words)
        try:
            yield role
            await role.stop()
        finally:
            await role.kill()
