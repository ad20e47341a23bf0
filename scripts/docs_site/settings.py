"""The table of settings, from the model that reads them."""

from __future__ import annotations

import re
from inspect import cleandoc
from textwrap import dedent
from typing import Any, Final, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from tidelog.settings import PREFIX, SETTINGS_FILE, Settings

_ENTRY: Final = re.compile(r"^([\w,\s]+?): (.*(?:\n .*)*)", re.MULTILINE)
_HEAD: Final = f"""\
# Settings

Each is a variable of the environment, and a key of `{SETTINGS_FILE}` in the working directory: the name
without `{PREFIX}`, in lower case. The environment wins over the file. A wrong value stops the start with a
message that names the variable; a name that no setting has is warned about.

| variable | default | what |
|---|---|---|
"""


def settings_page() -> str:
    """A row for each setting.

    Raises:
        KeyError: a setting is not described under `Attributes` in the docstring of `Settings`.
    """
    described = _descriptions()
    rows = [
        f"| `{PREFIX}{name.upper()}` | {_default(field)} | {described[name]}{_choices(field)} |"
        for name, field in Settings.model_fields.items()
    ]
    return _HEAD + "\n".join(rows) + "\n"


def _descriptions() -> dict[str, str]:
    """What the docstring says of each setting; several may share an entry."""
    docstring = cleandoc(Settings.__doc__ or "")
    attributes = docstring.partition("Attributes:\n")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    for names, text in _ENTRY.findall(dedent(attributes)):
        sentence = " ".join(text.split())
        found |= {name.strip(): sentence[:1].upper() + sentence[1:] for name in names.split(",")}
    return found


def _default(field: FieldInfo) -> str:
    default: object = field.default
    if default is None:
        return "none"
    if isinstance(default, bool):
        return "`on`" if default else "`off`"
    if isinstance(default, float):  # only durations are
        hours = default / 3_600
        return f"`{hours / 24:g}d`" if hours > 24 else f"`{hours:g}h`"
    return f"`{default}`"


def _choices(field: FieldInfo) -> str:
    choices = _literals(field.annotation)
    return f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""


def _literals(annotation: Any) -> tuple[object, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(getattr(annotation, "__members__", {}).values())
