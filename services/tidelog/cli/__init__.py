"""The command line (contract section 9). Exit codes: 0 done; 1 refused; 2 wrong use; 3 a service is away."""

from __future__ import annotations

import signal
import sys
from io import TextIOWrapper


def main() -> None:
    """Run `tidelog`."""
    # Who interrupts while modules are still imported gets an end, and no traceback out of the middle of them.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tidelog.cli.commands import app

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is shown as an escape; it must not end the command.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()
