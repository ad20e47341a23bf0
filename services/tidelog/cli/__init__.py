"""The command line (contract section 9). Exit codes: 0 done; 1 refused; 2 wrong use; 3 a service is away."""

from __future__ import annotations


def main() -> None:
    """Run `tidelog`."""
    from tidelog.cli.commands import app

    app()
