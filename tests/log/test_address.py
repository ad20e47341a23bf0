"""From an address to a log, and what is said of an address that names none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.log.address import UnusableAddress, open_log


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


async def test_kafka_is_not_spoken_yet() -> None:
    with pytest.raises(UnusableAddress, match="speaks sqlite: only"):
        await open_log("kafka://broker:9092")
