"""The pages lead where they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.docs_site.hooks import PAGES as MADE_PAGES

from tidelog_events.commands import COMMANDS_BY_TYPE
from tidelog_events.replies import Result
from tidelog_events.transitions import TRANSITION_CLASSES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/*/*.md")])
MADE = {ROOT / "docs" / name for name in MADE_PAGES}
"""Pages that only the built site has."""

LINK = re.compile(r"\]\((?!https?://)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    led_to = {link: page.parent / link for link in links}

    assert [link for link, path in led_to.items() if not path.exists() and path.resolve() not in MADE] == []


def test_the_contract_names_every_command_result_and_transition() -> None:
    contract = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    names = [*COMMANDS_BY_TYPE, *Result, *(cls.TYPE for cls in TRANSITION_CLASSES)]

    assert [name for name in names if f"`{name}`" not in contract] == []
