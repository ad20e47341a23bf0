"""How a process calls itself to a log, so that people can tell the members of a group from each other."""

from __future__ import annotations

import os
import re
import socket
from typing import Final

_OTHERS: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_MAX_HOST_CHARS: Final = 100


def process_name() -> str:
    """`<host>-<number of the process>`, of characters that Kafka takes in client ids."""
    host = _OTHERS.sub("_", socket.gethostname())[:_MAX_HOST_CHARS]
    return f"{host or 'host'}-{os.getpid()}"
