"""One running installation for all tests that only use it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.cli.running import Installation
from tests.providers.postgres import server_folder


@pytest.fixture(scope="session")
def running() -> Iterator[Installation]:
    """An installation whose `tidelog up` runs. Tests use queues and keys of their own."""
    with server_folder() as folder:
        installation = Installation.at(folder)
        with installation.start("up", "shop:app") as process:
            process.expect("Tidelog is up")
            yield installation
            process.signal(signal.SIGTERM)
            assert process.end() == 0


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation of which nothing exists yet."""
    with server_folder() as folder:
        yield Installation.at(folder)
