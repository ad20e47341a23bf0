"""What kind of file it is: by its first bytes, else by its name, else by whether it is text."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

_BY_HEAD: Final = (
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF8", "image"),
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "archive"),
    (b"\x1f\x8b", "archive"),
    (b"\xfd7zXZ\x00", "archive"),
    (b"BZh", "archive"),
    (b"\x28\xb5\x2f\xfd", "archive"),
    (b"\x7fELF", "program"),
    (b"SQLite format 3\x00", "database"),
    (b"#!", "script"),
)
_BY_SUFFIX: Final = {
    ".c": "c",
    ".css": "css",
    ".go": "go",
    ".html": "html",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".jsonl": "json",
    ".md": "markdown",
    ".py": "python",
    ".rs": "rust",
    ".rst": "text",
    ".sh": "script",
    ".sql": "sql",
    ".svg": "image",
    ".toml": "toml",
    ".ts": "typescript",
    ".txt": "text",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
}
_LOOKED_AT: Final = 4_096


def kind_of(name: str, head: bytes) -> str:
    """The kind of a file with that name whose content begins like that."""
    if not head:
        return "empty"
    for magic, kind in _BY_HEAD:
        if head.startswith(magic):
            return kind
    by_suffix = _BY_SUFFIX.get(PurePath(name).suffix.lower())
    return by_suffix or ("binary" if b"\0" in head[:_LOOKED_AT] else "text")
