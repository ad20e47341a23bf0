"""A folder and an environment in which nothing is set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without a settings file, and an environment without our variables."""
    for name in list(os.environ):
        if name.upper().startswith("TIDELOG_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
