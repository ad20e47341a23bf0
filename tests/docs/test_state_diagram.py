"""The picture of the states shows the steps that the rules allow, and no other."""

from __future__ import annotations

from scripts.docs_site.state_diagram import ARROWS, FILE, draw

from tidelog_events.states import LEGAL_STEPS
from tidelog_events.transitions import TRANSITION_CLASSES, JobTransition


def test_every_step_is_drawn_and_no_other() -> None:
    assert set(ARROWS) == LEGAL_STEPS


def test_every_transition_that_makes_a_step_is_named() -> None:
    named = {name for arrow in ARROWS.values() for name in arrow.types}
    steps = {cls.TYPE for cls in TRANSITION_CLASSES if issubclass(cls, JobTransition)}
    assert named == steps


def test_the_picture_on_the_page_is_the_drawn_one() -> None:
    assert FILE.read_text(encoding="utf-8") == draw()
