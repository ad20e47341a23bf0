"""From the setting `TIDELOG_LOG` to an open log (contract section 11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from tidelog.log.port import Log, LogError


class UnusableAddress(LogError):
    """The address names no log that this version can open."""


async def open_log(address: str) -> Log:
    """Open the log that an address names: `sqlite:PATH`, or `memory:` for one that dies with its process.

    Raises:
        UnusableAddress: another scheme, or a path is missing.
        LogError: the log is there, but cannot be opened; the message says why.
    """
    scheme, colon, rest = address.partition(":")
    opener = _OPENERS.get(scheme) if colon else None
    if opener is None:
        raise UnusableAddress(
            f"The log address {address!r} is not one of {', '.join(f'{known}:' for known in _OPENERS)}."
            " Use sqlite:PATH, for example sqlite:./tidelog.db."
        )
    return await opener(rest)


# The adapters are imported when they are asked for: nobody pays for, or needs, what another one is built on.


async def _open_sqlite(path: str) -> Log:
    from tidelog.log.sqlite import SqliteLog

    if not path:
        raise UnusableAddress("The log address 'sqlite:' names no file. Use sqlite:PATH.")
    return await SqliteLog.open(path)


async def _open_memory(rest: str) -> Log:
    from tidelog.log.memory import MemoryLog

    if rest:
        raise UnusableAddress(f"The log address 'memory:{rest}' names something. Use just memory:")
    return MemoryLog()


async def _refuse_kafka(rest: str) -> Log:
    raise UnusableAddress(f"This version speaks sqlite: only, not kafka:{rest}. Use sqlite:PATH.")


_OPENERS: Mapping[str, Callable[[str], Awaitable[Log]]] = {
    "sqlite": _open_sqlite,
    "memory": _open_memory,
    "kafka": _refuse_kafka,
}
