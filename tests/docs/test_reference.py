"""The reference leaves nothing out that can be imported."""

from __future__ import annotations

from tests.docs.blocks import ROOT

import tidelog


def test_every_public_name_is_on_a_page() -> None:
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md")]
    described = {line for page in pages for line in page.splitlines() if line.startswith("::: ")}
    elsewhere = {"Settings"}  # reference/settings.md is made from it
    assert {f"::: tidelog.{name}" for name in set(tidelog.__all__) - elsewhere} <= described
