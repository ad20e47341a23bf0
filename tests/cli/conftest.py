"""One running installation for all tests that only use it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.running import Installation


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation whose `tidelog up` runs. Tests use queues and keys of their own."""
    installation = Installation.at(tmp_path_factory.mktemp("running"))
    with installation.start("up", "shop:app") as process:
        process.expect("Tidelog is up")
        yield installation
        process.signal(signal.SIGTERM)
        assert process.end() == 0


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """An installation of which nothing exists yet."""
    return Installation.at(tmp_path)
