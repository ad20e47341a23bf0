"""What kind of file it is."""

from __future__ import annotations

import pytest

from tidelog.demo.kinds import kind_of


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("anything.py", b"", "empty"),
        ("m.py", b"import os", "python"),
        ("M.PY", b"import os", "python"),
        ("picture.txt", b"\x89PNG\r\n\x1a\n....", "image"),
        ("run", b"#!/bin/sh", "script"),
        ("log.db", b"SQLite format 3\x00", "database"),
        ("README", b"words", "text"),
        ("data", b"\x01\x00\x02", "binary"),
    ],
)
def test_by_content_then_by_name_then_by_looks(name: str, head: bytes, kind: str) -> None:
    assert kind_of(name, head) == kind
