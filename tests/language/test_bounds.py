"""Texts are cut on a character boundary: contract section 3, Bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog_events.bounds import MAX_TEXT_BYTES, cut_text


@pytest.mark.parametrize("character", ["a", "é", "€", "😀"])
def test_exactly_the_bound_is_kept_and_one_byte_more_is_cut(character: str) -> None:
    fitting = character * (MAX_TEXT_BYTES // len(character.encode()))

    assert cut_text(fitting) == fitting
    assert cut_text(fitting + "a" * (MAX_TEXT_BYTES - len(fitting.encode()) + 1)).startswith(fitting)
    assert cut_text(fitting + character) == fitting


@given(st.text(), st.integers(0, 40))
def test_the_cut_is_the_longest_beginning_that_fits(text: str, bound: int) -> None:
    cut = cut_text(text, bound)

    assert text.startswith(cut)
    assert len(cut.encode()) <= bound
    assert cut == text or len(text[: len(cut) + 1].encode()) > bound
