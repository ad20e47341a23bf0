"""MODULE:APP on the command line: find the application, and explain what is in the way."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from tidelog.cli.exits import WrongUse

if TYPE_CHECKING:
    from tidelog.app import App

_OURS: Final = str(Path(__file__).parents[1])
"""Where Tidelog lies: what fails there was called wrongly from elsewhere."""


def load_app(target: str) -> App:
    """The application that `MODULE:APP` names; modules of the working directory are found.

    Raises:
        WrongUse: the text has another form, there is no such module, importing it failed, it has no such
            name, or that is no `App`. The message says which.
    """
    from tidelog.app import App

    module_name, colon, attribute = target.partition(":")
    if not (module_name and colon and attribute):
        raise WrongUse(f"{target!r} is not of the form MODULE:APP, for example shop.jobs:app.")
    if module_name.endswith(".py") or "/" in module_name:
        raise WrongUse(f"{module_name!r} is a file; name the module instead, for example shop.jobs:app.")
    working_directory = str(Path.cwd())
    if working_directory not in sys.path:
        sys.path.insert(0, working_directory)
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise WrongUse(
                f"There is no module {error.name!r}. It is looked for in {working_directory} and among what "
                "is installed; is it a typing error, or the wrong working directory?"
            ) from error
        raise WrongUse(_import_failed(module_name, error)) from error
    except Exception as error:
        raise WrongUse(_import_failed(module_name, error)) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise WrongUse(f"The module {module_name!r} has no {attribute!r}.{_suggestion(module_name, App)}")
        found = getattr(found, name)
    if not isinstance(found, App):
        raise WrongUse(
            f"{target} is of type {type(found).__name__}, not a tidelog.App.{_suggestion(module_name, App)}"
        )
    return found


def _import_failed(module_name: str, error: Exception) -> str:
    where = _place(error.__traceback__)
    return f"Importing {module_name!r} failed{where}: {type(error).__name__}: {error}"


def _place(trace: TracebackType | None) -> str:
    """The last line of code outside the import machinery and outside Tidelog, or else the last of all."""
    frames = [
        frame
        for frame in traceback.extract_tb(trace)
        if not frame.filename.startswith(("<frozen ", __file__))
    ]
    frames = [frame for frame in frames if not frame.filename.startswith(_OURS)] or frames
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _suggestion(module_name: str, wanted: type) -> str:
    module = sys.modules.get(module_name)
    apps = [name for name, value in vars(module).items() if isinstance(value, wanted)] if module else []
    return f" Did you mean {' or '.join(f'{module_name}:{name}' for name in apps)}?" if apps else ""
