"""The base of every exception that Tidelog raises on purpose."""

from __future__ import annotations


class TidelogError(Exception):
    """Something named went wrong: the message says what happened, to what, and what to do."""
