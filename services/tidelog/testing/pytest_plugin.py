"""Fixtures for pytest, which a `conftest.py` asks for; nothing is loaded into runs that do not:

pytest_plugins = ["tidelog.testing.pytest_plugin"]
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidelog.app import App
from tidelog.testing.harness import Harness


@pytest.fixture
def tidelog_app() -> App:
    """The application under test: a fixture of this name in your `conftest.py` returns it."""
    raise pytest.UsageError(
        "tidelog_harness needs to know the application: define a fixture tidelog_app that returns your App."
    )


@pytest.fixture
def tidelog_harness(tidelog_app: App) -> Iterator[Harness]:
    """An open `Harness` of the application, a new one for each test."""
    harness = Harness(tidelog_app).open()
    yield harness
    harness.close()
