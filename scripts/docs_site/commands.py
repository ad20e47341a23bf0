"""Every command of `tidelog` with its arguments and options, from the command line itself."""

from __future__ import annotations

import re

import typer.main
from typer.cli import get_docs_for_click

from tidelog.cli.commands import app

_HELP_OPTION = re.compile(r"^\* `(?:-h, )?--help`: .*\n", re.MULTILINE)
_SHORT_LIST = re.compile(r"^\*\*Commands\*\*:\n\n(?:\* .*\n)+\n?", re.MULTILINE)
_EMPTY_OPTIONS = re.compile(r"^\*\*Options\*\*:\n\n(?=\n|#|\Z)", re.MULTILINE)

_INTRODUCTION = """\
# Commands and options

What `tidelog COMMAND --help` says. [The command line](../command-line.md) has exit codes, the documents that
`--json` prints, signals and the checks of `doctor`.

"""


def commands_page() -> str:
    """Usage, arguments and options of each command."""
    group = typer.main.get_command(app)
    text = get_docs_for_click(obj=group, ctx=typer.Context(group), name="tidelog")
    for pattern in (_HELP_OPTION, _SHORT_LIST, _EMPTY_OPTIONS):
        text = pattern.sub("", text)
    return _INTRODUCTION + text.replace("# `tidelog`\n", "## `tidelog`\n", 1)
