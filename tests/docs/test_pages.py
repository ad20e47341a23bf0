"""Every block of code in the documentation does what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.blocks import PAGES, ROOT, blocks_of
from tests.docs.page import Page

WITH_CODE = [page for page in PAGES if blocks_of(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_so(
    page: Path, postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Page(tmp_path, postgres_dsn, monkeypatch) as running:
        for block in blocks_of(page):
            running.run(block)
        running.end()
