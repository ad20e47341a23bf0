"""Texts from anywhere cannot do anything to a terminal."""

from __future__ import annotations

import pytest

from tidelog.cli.text import harmless, harmless_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcödé 日本 😀", "plain ünïcödé 日本 😀"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("two\nlines\r\n", r"two\nlines\r\n"),
        ("\x00 nul and \x7f del", r"\x00 nul and \x7f del"),
        ("\x9b31m the one-byte escape", r"\x9b31m the one-byte escape"),
        ("abc\u202edcba turned around", r"abc\u202edcba turned around"),
        ("\u2028 a separator", r"\u2028 a separator"),
        ("half \ud800", r"half \ud800"),
        ("[bold]markup[/bold] :smile:", "[bold]markup[/bold] :smile:"),
    ],
)
def test_is_made_harmless(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_lines_stay_lines_where_they_are_meant() -> None:
    assert harmless_lines("one\ntwo \x1b[2J") == "one\ntwo \\x1b[2J"
