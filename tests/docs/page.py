"""One page at work: a folder, an installation of Tidelog and a Python session, for its blocks in order."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from inspect import CO_COROUTINE
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

import asyncpg
import orjson
import pytest
from tests.cli.running import SECONDS, Process
from tests.docs.blocks import Block
from tests.docs.command_line import CHECKS, command_lines, environment_of, words_of
from tests.docs.messages import check_message
from tests.docs.output import assert_shown
from tests.integration.console import PRODUCER, java_command
from typer.testing import CliRunner

from tidelog.cli.commands import app
from tidelog.settings import Settings

OUTPUT: Final = "Output"
"""The title of a block that shows what the block before it prints."""

_PROMPT: Final = re.compile(r"^\$ ", re.MULTILINE)
_READY: Final = {
    "up": "Tidelog is up",
    "engine": "an engine starts",
    "projector": "a projector starts",
    "worker": " serves ",
    "observe": " is in the group ",
}
"""Commands that run until they are stopped, and what they say when they do their work."""


class Page:
    """What the blocks of a page share.

    Args:
        folder: an empty one; it becomes the working directory.
        dsn: of the page's own database. All else is as without any settings: the log is a file in the folder.
        settings: where the page's installation is elsewhere.
        words: what pages say, and what stands for it here, such as the address of a broker.
    """

    def __init__(
        self,
        folder: Path,
        dsn: str,
        monkeypatch: pytest.MonkeyPatch,
        settings: Mapping[str, str] = MappingProxyType({}),
        words: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._folder = folder
        self._dsn = dsn
        self._monkeypatch = monkeypatch
        self._words = words
        self._namespace: dict[str, object] = {"__name__": "__main__", "until_state": self._until_state}
        self._roles = ExitStack()
        self._runner = asyncio.Runner()
        self._printed = ""
        self._exit_code = 0
        self._files: dict[str, Block] = {}
        self._used = ""
        for name in [name for name in os.environ if name.startswith("TIDELOG_")]:
            monkeypatch.delenv(name)
        for name, value in {"TIDELOG_POSTGRES": dsn, "USER": "ann", **settings}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(folder)

    def run(self, block: Block) -> None:
        """Check a block by what its language asks for.

        Raises:
            AssertionError: it is not so, or nothing here can tell.
        """
        for said, meant in self._words.items():
            block = replace(block, source=block.source.replace(said, meant))
        if Path(block.title).suffix:
            (self._folder / block.title).write_text(block.source, encoding="utf-8")
            self._files[block.title] = block
        else:
            self._used += block.source
        match block.language:
            case "python":
                self._python(block)
            case "console":
                self._console(block)
            case "bash":
                self._listing(block)
            case "toml":
                self._toml(block)
            case "json":
                self._json(block)
            case "sql":
                self._sql(block)
            case "text":
                self._text(block)
            case other:
                raise AssertionError(f"{block}: nothing checks blocks of {other or 'no language'}")

    def end(self) -> None:
        """Look whether anything was shown for nothing."""
        unused = [str(block) for name, block in self._files.items() if not self._uses(name)]
        assert unused == [], f"files that no later block of the page runs, imports or names: {unused}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._namespace.clear()  # somebody's producer may be among it, which goes on calling its broker
        self._runner.close()
        self._roles.close()
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or "/").parent == self._folder:
                del sys.modules[name]

    def _uses(self, name: str) -> bool:
        others = "".join(block.source for other, block in self._files.items() if other != name)
        return name == "tidelog.toml" or Path(name).stem in self._used + others

    def _python(self, block: Block) -> None:
        if block.title in self._files:
            compile(block.source, str(block.page), "exec")
            return
        padded = "\n" * (block.line - 1) + block.source
        code = compile(padded, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with redirect_stdout(io.StringIO()) as stdout:
            result = eval(code, self._namespace)  # noqa: S307 - a page of ours, which alone can hold an `await`
            if code.co_flags & CO_COROUTINE:
                self._runner.run(result)
        self._printed = stdout.getvalue()

    def _console(self, block: Block) -> None:
        commands = _PROMPT.split(block.source.replace("\\\n", " "))
        assert commands[0].strip() == "", f"{block} does not begin with a command"
        for index, text in enumerate(commands[1:]):
            line, _, shown = text.partition("\n")
            self._command(line, f"{block}: $ {line}")
            if shown.strip():
                assert_shown(shown, self._printed, f"{block}: $ {line}")
            is_asked_for = commands[index + 2 : index + 3] == [f"echo $?\n{self._exit_code}\n"]
            if not is_asked_for:  # the next line shows the exit code, and it is this one
                assert self._exit_code == 0, f"{block}: $ {line}\n{self._printed}"

    def _command(self, line: str, where: str) -> None:
        if line == "echo $?":
            self._printed, self._exit_code = f"{self._exit_code}\n", 0
            return
        variables, (*words,) = environment_of(words_of(line))
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)
        match words:
            case []:
                self._printed = ""
            case ["tidelog", role, *_] if role in _READY:
                process = self._roles.enter_context(Process.start(words[1:], self._folder, {}))
                self._roles.callback(process.popen.kill)  # to end in order takes time, and nothing needs it
                self._printed = process.expect(_READY[role])
            case ["tidelog", *arguments]:
                result = CliRunner().invoke(app, arguments)
                self._printed, self._exit_code = result.output, result.exit_code
            case ["kafka-console-producer.sh", *options, "<", file]:
                records = (self._folder / file).read_text(encoding="utf-8")
                self._process(java_command(PRODUCER, *options), records)
            case ["python", *arguments]:
                self._process([sys.executable, *arguments])
            case ["pytest", *arguments]:
                self._process([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments])
            case _:
                raise AssertionError(f"{where}: {shlex.join(words)} cannot be run here; list it as bash")

    def _process(self, command: list[str], typed: str = "") -> None:
        done = subprocess.run(
            command,
            cwd=self._folder,
            input=typed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self._printed, self._exit_code = done.stdout, done.returncode

    def _listing(self, block: Block) -> None:
        """Commands to read; they are parsed and not run."""
        said: dict[str, str] = {}
        for line in command_lines(block.source):
            variables, words = environment_of(words_of(line))
            said |= variables
            if words:
                assert words[0] in CHECKS, f"{block}: nothing checks {words[0]}"
                CHECKS[words[0]](words[1:])
        if any(name.startswith("TIDELOG_") for name in said):
            with self._monkeypatch.context() as patched:
                for name, value in said.items():
                    patched.setenv(name, value)
                _load_settings(block)

    def _toml(self, block: Block) -> None:
        assert block.title == "tidelog.toml", f"{block}: TOML is for tidelog.toml; give it that title"
        with self._monkeypatch.context() as patched:
            patched.delenv("TIDELOG_POSTGRES")
            _load_settings(block)
        (self._folder / block.title).unlink()  # the page's own installation stays where it is

    def _json(self, block: Block) -> None:
        documents = block.source.splitlines() if block.title in self._files else [block.source]
        for document in documents:
            json.loads(document)
        if not block.title:
            check_message(orjson.loads(block.source), str(block))

    def _sql(self, block: Block) -> None:
        assert CliRunner().invoke(app, ["init"]).exit_code == 0
        rows = self._runner.run(self._rows(block.source))
        lines = [[*rows[0].keys()], *([*row.values()] for row in rows)] if rows else []
        self._printed = "".join(" | ".join(map(str, line)) + "\n" for line in lines)

    async def _rows(self, query: str) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self._dsn)
        try:
            return await connection.fetch(query)
        finally:
            await connection.close()

    async def _until_state(self, job_id: str, state: str) -> None:
        """For hidden blocks: wait until Postgres shows a job in a state that may not last."""
        connection = await asyncpg.connect(self._dsn)
        try:
            async with asyncio.timeout(SECONDS):
                query = "SELECT 1 FROM tidelog.jobs WHERE job_id = $1 AND state = $2"
                while True:
                    if await connection.fetchval(query, job_id, state):
                        return
                    await asyncio.sleep(0)
        finally:
            await connection.close()

    def _text(self, block: Block) -> None:
        if block.title == OUTPUT:
            assert_shown(block.source, self._printed, str(block))


def _load_settings(block: Block) -> None:
    """Read the settings as they are said now; whatever they warn of is wrong on a page."""
    warnings = _Warnings()
    logger = logging.getLogger("tidelog.settings")
    logger.addHandler(warnings)
    try:
        Settings()
    finally:
        logger.removeHandler(warnings)
    assert warnings.texts == [], f"{block}: {warnings.texts}"


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
