"""The site can be built without a warning, and asks nobody for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT

FETCHED = re.compile(r"""<(?:link|script|img)[^>]*(?:src|href)="?(?:https?:)?//[^>]*>|@import[^;]*//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {page.with_name("index.html") if page.name == "README.html" else page for page in pages} <= made


def test_readers_fetch_nothing_from_elsewhere(site: Path) -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in [*site.rglob("*.html"), *site.rglob("*.css")]}
    found = {page.name: FETCHED.findall(text) for page, text in texts.items()}
    assert {name: links for name, links in found.items() if links} == {}
