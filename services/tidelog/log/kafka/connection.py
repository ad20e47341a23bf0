"""How this process reaches the brokers, and how it lets go of them, both within bounds.

aiokafka waits for ever in many places (a start without a coordinator, a stop without a broker), so every
client is started and stopped here.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias, TypedDict

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError, KafkaError

from tidelog.log.kafka.metadata import ask_without_making
from tidelog.log.kafka.options import KafkaSecurity
from tidelog.log.port import LogUnavailable

CONNECT_SECONDS = 10.0
"""The longest wait for a client to be ready, and for an answer about topics and offsets."""
CLOSE_SECONDS = 4.0
"""The longest wait for a farewell: to deliver what was sent, to leave a group."""
_SHUT_SECONDS = 1.0
_REQUEST_TIMEOUT_MS = 15_000
"""After which aiokafka closes a connection that does not answer, and opens another one."""

logger = logging.getLogger("tidelog.log")

Client: TypeAlias = AIOKafkaProducer | AIOKafkaConsumer | AIOKafkaAdminClient


class ClientOptions(TypedDict, total=False):
    """What every aiokafka client is made with."""

    bootstrap_servers: str
    request_timeout_ms: int
    security_protocol: str
    ssl_context: ssl.SSLContext
    sasl_mechanism: str
    sasl_plain_username: str
    sasl_plain_password: str


@dataclass(frozen=True, slots=True)
class Connection:
    """The brokers to begin with, and the security of every connection to them."""

    bootstrap: str
    security: KafkaSecurity
    _ssl_context: ssl.SSLContext | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ssl_context", self.security.ssl_context())

    @property
    def address(self) -> str:
        """As the setting names it."""
        return f"kafka://{self.bootstrap}"

    def options(self) -> ClientOptions:
        """What every aiokafka client is made with."""
        options: ClientOptions = {
            "bootstrap_servers": self.bootstrap,
            "request_timeout_ms": _REQUEST_TIMEOUT_MS,
            "security_protocol": self.security.protocol,
        }
        if self._ssl_context is not None:
            options["ssl_context"] = self._ssl_context
        if self.security.uses_sasl:
            options["sasl_mechanism"] = self.security.mechanism
            options["sasl_plain_username"] = self.security.username or ""
            options["sasl_plain_password"] = self.security.password or ""
        return options

    def unavailable(self, doing: str, error: BaseException | None = None) -> LogUnavailable:
        """The brokers could not do something: not in time, or not at all."""
        why = (
            "did not answer in time" if error is None or isinstance(error, TimeoutError) else f"said: {error}"
        )
        return LogUnavailable(
            f"{self.address} {why} ({doing}). Check that the brokers run, can be reached from here under the"
            " addresses that they advertise, and that this client is let in."
        )

    @contextmanager
    def explaining(self, doing: str) -> Iterator[None]:
        """Turn the failures of a block in which nothing is written into `LogUnavailable`."""
        try:
            yield
        except (TimeoutError, OSError, KafkaError) as error:
            raise self.unavailable(doing, error) from error

    @asynccontextmanager
    async def asking(self, doing: str) -> AsyncIterator[None]:
        """A question to the brokers: `explaining`, and an answer that takes too long is none."""
        with self.explaining(doing):
            async with asyncio.timeout(CONNECT_SECONDS):
                yield

    def closed(self) -> LogUnavailable:
        """What somebody is told who uses what was closed."""
        return LogUnavailable(f"This connection to {self.address} is closed; open another one.")

    async def start(self, client: Client, doing: str) -> None:
        """Connect a client; one that cannot is closed again.

        Raises:
            LogUnavailable: no broker was ready in time.
        """
        ask_without_making(_requests_of(client))
        try:
            async with self.asking(doing):
                await _start(client)
        except BaseException:
            await stop(client, seconds=0)
            raise


async def _start(client: Client) -> None:
    """aiokafka's first connection is nobody's until a broker has answered: broken off, a start forgets it."""
    try:
        await client.start()
    except BaseException as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            for value in frame.f_locals.values():
                if isinstance(value, AIOKafkaConnection):
                    value.close()
        if isinstance(error, AssertionError):  # aiokafka's way to say so
            raise KafkaConnectionError("no broker is known any more") from error
        raise


async def stop(client: Client, *, seconds: float = CLOSE_SECONDS) -> None:
    """Close a client: politely if the brokers let it within so many seconds, and in any case.

    Without a broker, aiokafka's own stop flushes for ever; broken off, it leaves tasks and sockets behind.
    """
    # In a task of its own: a consumer that is stopped at once raises a CancelledError that nobody meant.
    closing = client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop()
    farewell = asyncio.ensure_future(closing)
    try:
        await asyncio.wait([farewell], timeout=seconds)
    finally:
        if not farewell.done() or farewell.cancelled() or farewell.exception() is not None:
            logger.debug("%r did not close and is cut off", client)
            await _cut_off(client, farewell)
        await _close_late_connections(_requests_of(client))


def _requests_of(client: Client) -> AIOKafkaClient:
    """The part of a client that holds its connections."""
    return client.client if isinstance(client, AIOKafkaProducer) else client._client  # noqa: SLF001


async def _close_late_connections(requests: AIOKafkaClient) -> None:
    """Close what a request that was under way has opened while the rest was closed: it would be nobody's."""
    opening = requests._get_conn_lock  # noqa: SLF001 - held while a connection is opened
    with suppress(TimeoutError):
        async with asyncio.timeout(_SHUT_SECONDS), opening:
            late = [one.close() for one in requests._conns.values() if one.connected()]  # noqa: SLF001
            if late:
                await asyncio.wait(late)


async def _cut_off(client: Client, farewell: asyncio.Future[None]) -> None:
    """End what is left of a client: tasks that run methods of its parts, and its sockets."""
    farewell.cancel()
    parts = [part for part in vars(client).values() if type(part).__module__.startswith("aiokafka.")]
    left = [task for task in asyncio.all_tasks() if _runs_one_of(task, parts)]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_SHUT_SECONDS)
    for part in parts:
        if isinstance(part, AIOKafkaClient):
            await asyncio.wait([asyncio.ensure_future(part.close())], timeout=_SHUT_SECONDS)


def _runs_one_of(task: asyncio.Task[object], parts: list[object]) -> bool:
    frame = getattr(task.get_coro(), "cr_frame", None)
    return frame is not None and any(frame.f_locals.get("self") is part for part in parts)
