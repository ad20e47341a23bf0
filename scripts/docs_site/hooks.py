"""What `mkdocs.yml` hooks into the build: the pages that are made from the code and from the root's files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from scripts.docs_site.changelog import changelog_page
from scripts.docs_site.commands import commands_page
from scripts.docs_site.messages import messages_page
from scripts.docs_site.python_names import other_names
from scripts.docs_site.settings import settings_page
from scripts.docs_site.tables import tables_page

PAGES: Final[dict[str, Callable[[], str]]] = {
    "changelog.md": changelog_page,
    "reference/commands.md": commands_page,
    "reference/messages.md": messages_page,
    "reference/settings.md": settings_page,
    "reference/tables.md": tables_page,
}
"""What makes each page, by where it stands."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file holds."""
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let the reference of Python leave nothing out that can be imported."""
    return markdown + other_names() if page.file.src_uri == "reference/python.md" else markdown
