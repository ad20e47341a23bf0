"""Commands as pages write them, parsed by the command line that they are for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import typer.core
import typer.main
from tests.docs.blocks import ROOT

from tidelog.cli.commands import app

_ASSIGNMENT = re.compile(r"[A-Z_]+=.*", re.DOTALL)
_ROOT_OPTIONS = {"--log-level": 2, "--version": 1, "--help": 1}
"""Options before the command, and how many words they take."""
_TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)


def words_of(line: str) -> list[str]:
    """The words of a command, without its comment."""
    return shlex.split(line, comments=True)


def command_lines(source: str) -> Iterator[str]:
    """The commands of a listing, each on one line."""
    for line in source.replace("\\\n", " ").splitlines():
        if words_of(line):
            yield line


def environment_of(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """What is assigned before a command, or by `export`, and the rest."""
    assigned: dict[str, str] = {}
    rest = words[1:] if words[0] == "export" else words
    while rest and _ASSIGNMENT.fullmatch(rest[0]):
        name, _, value = rest[0].partition("=")
        assigned[name] = value
        rest = rest[1:]
    return assigned, rest


def check_tidelog(arguments: list[str]) -> None:
    """Parse the arguments of `tidelog`, and run nothing.

    Raises:
        AssertionError: there is no such command or option, or a value is wrong.
    """
    command, rest = typer.main.get_command(app), list(arguments)
    if rest[0] in _ROOT_OPTIONS:
        rest = rest[_ROOT_OPTIONS[rest[0]] :]
    while rest and isinstance(command, typer.core.TyperGroup):
        assert rest[0] in command.commands, f"no such command: tidelog {shlex.join(arguments)}"
        command, rest = command.commands[rest[0]], rest[1:]
    try:
        command.make_context("tidelog", rest).close()
    except Exception as error:
        reason = getattr(error, "message", None)  # of one class or another, by the version of typer
        raise AssertionError(f"tidelog {shlex.join(arguments)}: {reason or error!r}") from error


def _check_make(arguments: list[str]) -> None:
    targets = _TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    wanted = [argument for argument in arguments if "=" not in argument]
    assert set(wanted) <= set(targets), f"no such target: make {shlex.join(arguments)}"


def _check_docker(arguments: list[str]) -> None:
    """`docker compose run --rm tidelog …` is a `tidelog` command; the others are Docker's own."""
    if arguments[:4] == ["compose", "run", "--rm", "tidelog"]:
        check_tidelog(arguments[4:])
    else:
        assert arguments[:2] in (["compose", "up"], ["compose", "down"], ["compose", "logs"]), arguments


def _check_file(arguments: list[str]) -> None:
    (file,) = arguments
    assert Path(file).exists(), f"the page does not make {file}"


def _other_peoples(arguments: list[str]) -> None:
    """Of somebody else's programs only the name is known here."""


CHECKS: Mapping[str, Callable[[list[str]], None]] = {
    "tidelog": check_tidelog,
    "make": _check_make,
    "docker": _check_docker,
    "python": _check_file,
    "pip": _other_peoples,
    "cd": _other_peoples,
    "git": _other_peoples,
}
"""What may be listed, and how it is checked."""
