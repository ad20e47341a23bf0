"""What `from tidelog import …` gives and no page of the reference describes by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import tidelog

_REFERENCE: Final = Path(__file__).parents[2] / "docs" / "reference"
_DESCRIBED: Final = re.compile(r"^::: tidelog\.(\w+)$", re.MULTILINE)
_ON_THE_SETTINGS_PAGE: Final = {"Settings"}


def other_names() -> str:
    """A section with the names that are left; empty when there are none."""
    pages = [page.read_text(encoding="utf-8") for page in _REFERENCE.glob("*.md")]
    described = {name for page in pages for name in _DESCRIBED.findall(page)}
    left = sorted(set(tidelog.__all__) - described - _ON_THE_SETTINGS_PAGE)
    if not left:
        return ""
    return "\n## More\n" + "".join(f"\n::: tidelog.{name}\n" for name in left)
