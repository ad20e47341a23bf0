"""The changelog at the root of the repository, as a page."""

from __future__ import annotations

from pathlib import Path

_CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def changelog_page() -> str:
    """The text as it stands there."""
    return _CHANGELOG.read_text(encoding="utf-8")
