"""From the setting `TIDELOG_LOG` to an open log (contract section 11)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tidelog.log.kafka.options import KafkaOptions
from tidelog.log.port import Log, LogError

_BROKERS: Final = re.compile(r"//[^\s,/@:]+:\d{1,5}(,[^\s,/@:]+:\d{1,5})*")


class UnusableAddress(LogError):
    """The address names no log that this version can open."""


async def open_log(address: str, *, kafka: KafkaOptions | None = None) -> Log:
    """Open the log that an address names.

    Args:
        address: `sqlite:PATH`, `kafka://host:port[,host:port]`, or `memory:` (dies with its process).
        kafka: security and replication, for a Kafka address.

    Raises:
        UnusableAddress: another scheme, or it names nothing that can be opened.
        LogError: the log is there, but cannot be opened; the message says why.
    """
    scheme, colon, rest = address.partition(":")
    opener = _OPENERS.get(scheme) if colon else None
    if opener is None:
        raise UnusableAddress(
            f"The log address {address!r} is not one of {', '.join(f'{known}:' for known in _OPENERS)}."
            " Use sqlite:PATH, for example sqlite:./tidelog.db, or kafka://host:port."
        )
    return await opener(rest, kafka or KafkaOptions())


# The adapters are imported when they are asked for: nobody pays for, or needs, what another one is built on.


async def _open_sqlite(path: str, _: KafkaOptions) -> Log:
    from tidelog.log.sqlite import SqliteLog

    if not path:
        raise UnusableAddress("The log address 'sqlite:' names no file. Use sqlite:PATH.")
    return await SqliteLog.open(path)


async def _open_memory(rest: str, _: KafkaOptions) -> Log:
    from tidelog.log.memory import MemoryLog

    if rest:
        raise UnusableAddress(f"The log address 'memory:{rest}' names something. Use just memory:")
    return MemoryLog()


async def _open_kafka(rest: str, options: KafkaOptions) -> Log:
    if _BROKERS.fullmatch(rest) is None:
        raise UnusableAddress(
            f"The log address 'kafka:{rest}' does not name brokers. Use kafka://host:port[,host:port]."
        )
    try:
        from tidelog.log.kafka.log import KafkaLog
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "aiokafka":
            raise
        raise UnusableAddress(
            f"The log address 'kafka:{rest}' needs aiokafka, which is not installed. Use:"
            " pip install 'tidelog[kafka]'"
        ) from error
    return await KafkaLog.open(rest.removeprefix("//"), options)


_OPENERS: Mapping[str, Callable[[str, KafkaOptions], Awaitable[Log]]] = {
    "sqlite": _open_sqlite,
    "memory": _open_memory,
    "kafka": _open_kafka,
}
