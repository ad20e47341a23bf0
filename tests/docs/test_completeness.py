"""What a user can meet or call is named on the page where they would look for it."""

from __future__ import annotations

import pytest
from tests.docs.blocks import ROOT

from tidelog import Client, JobContext, ObserverContext, ReasonCode
from tidelog.testing import Harness

HOW_TO = ROOT / "docs" / "how-to"
INTERNAL = {"renewed_until", "added_tags", "client_id", "pending", "close"}
"""Of the worker, and what is of no use to a reader of a how-to."""


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")} - INTERNAL


@pytest.mark.parametrize(
    ("names", "pages"),
    [
        ({f"| `{code.value}` |" for code in ReasonCode}, ["why-is-my-job-not-running.md"]),
        (public(Harness), ["testing.md"]),
        (public(ObserverContext), ["observers.md"]),
        (public(JobContext), ["dependencies.md", "cancel-and-requeue.md", "tags.md", "../contract.md"]),
        (public(Client), ["*.md", "../contract.md", "../concepts.md", "../coming-from.md"]),
    ],
    ids=["why", "Harness", "ObserverContext", "JobContext", "Client"],
)
def test_every_name_is_told_of(names: set[str], pages: list[str]) -> None:
    text = "".join(page.read_text(encoding="utf-8") for name in pages for page in HOW_TO.glob(name))
    assert sorted(name for name in names if name not in text) == []
