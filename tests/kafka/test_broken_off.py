"""A start that is broken off leaves no connection behind, at whatever point it was."""

from __future__ import annotations

import asyncio
import gc
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka.conn import AIOKafkaConnection
from tests.conformance.cluster import SECONDS

from tidelog.log.kafka.log import KafkaLog
from tidelog.log.port import LogUnavailable

_API_VERSIONS = 18
_METADATA = 3
_HEADER = ">ihhi"
"""Of a request: its length, what it asks for, in which version, and its number."""
_NO_BROKERS = struct.pack(">iihii", 0, 0, -1, -1, 0)
"""Metadata of version 5: neither brokers nor a cluster id, a controller or topics."""


class HalfABroker:
    """Says which requests it knows, and answers none of them; or that there are no brokers, as in a start."""

    def __init__(self, *, knows_nobody: bool = False) -> None:
        self._knows_nobody = knows_nobody
        self.address = ""
        self.asked = asyncio.Event()
        self.abandoned = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[HalfABroker]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length, api, _, number = struct.unpack(
                    _HEADER, await reader.readexactly(struct.calcsize(_HEADER))
                )
                await reader.readexactly(length + 4 - struct.calcsize(_HEADER))
                if api == _API_VERSIONS:
                    answer = struct.pack(">hihhhhhh", 0, 2, _API_VERSIONS, 0, 0, _METADATA, 0, 5)
                elif self._knows_nobody:
                    answer = _NO_BROKERS
                else:
                    self.asked.set()
                    continue
                writer.write(struct.pack(">ii", 4 + len(answer), number) + answer)
        except asyncio.IncompleteReadError:
            self.abandoned.set()
        finally:
            writer.close()


async def test_the_first_connection_is_closed_before_the_brokers_have_said_who_they_are() -> None:
    async with HalfABroker().listening() as broker:
        opening = asyncio.create_task(KafkaLog.open(broker.address))
        async with asyncio.timeout(SECONDS):
            await broker.asked.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError) as broken_off:
            await opening
        async with asyncio.timeout(SECONDS):
            await broker.abandoned.wait()
        assert broken_off.tb is not None, (
            "what refers to the connection is still here: nobody but we closed it"
        )


async def test_a_cluster_without_brokers_is_called_unavailable() -> None:
    async with (
        HalfABroker(knows_nobody=True).listening() as broker,
        await KafkaLog.open(broker.address) as log,
    ):
        with pytest.raises(LogUnavailable, match="Check that the brokers run"):
            await log.writer("somebody")


async def test_a_request_that_is_under_way_leaves_no_connection_behind(kafka_address: str) -> None:
    log = await KafkaLog.open(kafka_address)
    asking = asyncio.create_task(log.groups("nobody"))
    await asyncio.sleep(0)  # it opens the connection that it needs
    await log.close()
    await asyncio.wait([asking])
    asking.exception()
    gc.collect()
    left = [one for one in gc.get_objects() if isinstance(one, AIOKafkaConnection)]
    assert not [one for one in left if one.connected()]
