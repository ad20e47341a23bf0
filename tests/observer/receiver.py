"""A receiver of webhooks: a small HTTP server on this host, with or without TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.conformance.cluster import SECONDS
from tests.providers.certificates import Certificate


@dataclass(slots=True)
class Request:
    """What came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Receiver:
    """What it answers, and what came.

    Attributes:
        answers: status lines with headers and body, one after another; the last one stays.
        hangs: whether it takes requests and answers nothing.
        is_endless: whether its answer goes on as long as anybody reads it.
    """

    answers: list[bytes] = field(default_factory=lambda: [b"204 No Content\r\n\r\n"])
    hangs: bool = False
    is_endless: bool = False
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    _connections: set[asyncio.Task[object]] = field(default_factory=set)

    async def until_closed(self) -> None:
        """Wait until every connection has ended."""
        if self._connections:
            await asyncio.wait(self._connections, timeout=SECONDS)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
        try:
            await self._answer(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):  # a peer that is gone already
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers["Content-Length"]))
        self.requests.append(Request(head[0].split()[1], headers, body))
        if self.hangs:
            await reader.read()
        else:
            answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
            writer.write(b"HTTP/1.1 " + answer)
        with suppress(OSError):  # it has heard enough
            while self.is_endless:
                writer.write(b"x" * 4_096)
                await writer.drain()


@asynccontextmanager
async def receiving(receiver: Receiver, certificate: Certificate | None = None) -> AsyncIterator[Receiver]:
    """The receiver at `receiver.url`, until the block ends."""
    context: ssl.SSLContext | None = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.file, certificate.key_file)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=context)
    receiver.url = (
        f"http{'' if context is None else 's'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/hush?key=hush"
    )
    async with server:
        yield receiver
        await receiver.until_closed()
