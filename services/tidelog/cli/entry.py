"""How every command is run: asynchronous ones on a loop, and no traceback for an expected end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Final, ParamSpec

import typer

from tidelog.cli.console import print_json, print_line, say
from tidelog.cli.exits import ExitCode, exit_code, printed_result
from tidelog_events.errors import TidelogError

logger = logging.getLogger("tidelog.cli")

_STUBBORN_SECONDS: Final = 2.0

P = ParamSpec("P")


def command(function: Callable[P, Coroutine[None, None, None] | None]) -> Callable[P, None]:
    """The function as a command: `TidelogError`s become messages and exit codes (contract section 9)."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            work = function(*args, **kwargs)
            if work is not None:
                _run_on_a_loop(work)
        except TidelogError as error:
            raise typer.Exit(explain(error, as_json=kwargs.get("as_json") is True)) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            # A fault of ours. People get a sentence; whoever looks for it gets the traceback.
            logger.debug("the command failed", exc_info=True)
            say(
                f"tidelog: an unexpected {type(error).__name__}: {error}. This is a fault of Tidelog; "
                "run `tidelog --log-level debug …` to see where it happened, and report it."
            )
            raise typer.Exit(ExitCode.REFUSED) from None

    return run


def explain(error: TidelogError, *, as_json: bool) -> int:
    """Tell people about an error, and programs the contract's word for it if it has one."""
    logger.debug("refused", exc_info=error)
    result = printed_result(error)
    if result is not None and as_json:
        print_json({"result": result, "message": str(error)})
    elif result is not None:
        print_line(result)
    say(f"tidelog: {error}")
    for note in getattr(error, "__notes__", ()):
        say(note)
    return exit_code(error)


def _run_on_a_loop(coroutine: Coroutine[None, None, None]) -> None:
    import asyncio
    import signal

    async def cancelled_by_sigterm() -> None:
        # SIGINT cancels the main task anyway; SIGTERM must let go of the embedded Postgres just the same.
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await coroutine
        await _leave_the_stubborn()

    try:
        asyncio.run(cancelled_by_sigterm())
    except asyncio.CancelledError as error:
        # `stop_on_signals` names the signal; what else cancels the main task here is SIGTERM.
        name = error.args[0] if error.args else signal.SIGTERM.name
        raise typer.Exit(128 + signal.Signals[name]) from None


async def _leave_the_stubborn() -> None:
    """End the process if a handler that was left behind does not let itself be cancelled.

    `asyncio.run` would wait for it for ever. All that had to be put in order has been.
    """
    import asyncio
    import os

    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, stubborn = await asyncio.wait(left, timeout=_STUBBORN_SECONDS)
        if stubborn:
            logger.warning("%d tasks do not end; the process ends without them", len(stubborn))
            logging.shutdown()
            os._exit(0)
