"""From an address to a log, and what is said of an address that names none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidelog.log.address import UnusableAddress, open_log
from tidelog.log.port import LogUnavailable


async def test_an_address_opens_its_log(tmp_path: Path) -> None:
    for address in (f"sqlite:{tmp_path / 'log.db'}", "memory:"):
        async with await open_log(address) as log:
            assert log.address == address


@pytest.mark.parametrize(
    "address", ["", "log.db", "redis://host", "sqlite", "sqlite:", "memory:name", "/var/log.db"]
)
async def test_an_address_of_nothing_is_refused_by_name(address: str) -> None:
    with pytest.raises(UnusableAddress, match=rf"'{address}.*[Uu]se"):
        await open_log(address)


@pytest.mark.parametrize(
    "address",
    ["kafka:", "kafka://", "kafka:broker:9092", "kafka://broker", "kafka://a:1,b", "kafka://u:p@a:1"],
)
async def test_a_kafka_address_names_host_and_port_of_each_broker(address: str) -> None:
    with pytest.raises(UnusableAddress, match=rf"'{address}'.*kafka://host:port"):
        await open_log(address)


async def test_a_broker_that_is_not_there_is_named() -> None:
    with pytest.raises(LogUnavailable, match=r"kafka://127\.0\.0\.1:1 .*Check that the brokers run"):
        await open_log("kafka://127.0.0.1:1")


async def test_without_the_client_library_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("tidelog.log.kafka.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    with pytest.raises(UnusableAddress, match=r"pip install 'tidelog\[kafka\]'"):
        await open_log("kafka://127.0.0.1:1")
