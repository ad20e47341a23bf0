"""Every block of code in the documentation does what the page says."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from tests.docs.blocks import PAGES, ROOT, blocks_of
from tests.docs.page import Page
from tests.providers.kafka import GivenBroker
from tests.providers.kafka_broker import Broker

ON_KAFKA = [ROOT / "docs" / "how-to" / "other-languages.md"]
"""Pages that are played on a real broker."""

WITH_CODE = [page for page in PAGES if page not in ON_KAFKA and blocks_of(page)]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_what_a_page_shows_is_so(
    page: Path, postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Page(tmp_path, postgres_dsn, monkeypatch) as running:
        play(page, running)


@pytest.mark.parametrize("page", ON_KAFKA, ids=name)
def test_what_a_page_shows_is_so_on_kafka(
    page: Path,
    kafka: Broker | GivenBroker,
    postgres_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefix = f"docs-{uuid4().hex}"
    settings = {
        "TIDELOG_LOG": f"kafka://{kafka.address}",
        "TIDELOG_PREFIX": prefix,
        "TIDELOG_PARTITIONS": "2",
    }
    words = {"localhost:9092": kafka.address, "tidelog.commands": f"{prefix}.commands"}
    words |= {"tidelog.replies": f"{prefix}.replies"}
    with Page(tmp_path, postgres_dsn, monkeypatch, settings, words) as running:
        play(page, running)


def play(page: Path, running: Page) -> None:
    """From top to bottom."""
    for block in blocks_of(page):
        running.run(block)
    running.end()
