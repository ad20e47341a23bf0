"""The blocks of code of a page, shown and hidden, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sybil import Document, Region
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, RawFencedCodeBlockLexer

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]

_INFO = re.compile(r"(?P<info>[^\n]*)\n")
_TITLE = re.compile(r'title="(?P<title>[^"]*)"')


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code.

    Attributes:
        language: the first word behind the fence; empty without one.
        title: what stands above the block for readers: the name of a file, or `Output`.
        source: the code, without the indentation of the block.
        line: of the page, where the code begins.
    """

    page: Path
    language: str
    title: str
    source: str
    line: int

    def __str__(self) -> str:
        page = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return f"{page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page: fenced ones, and those in comments (`<!-- run: LANGUAGE`) for tests alone."""
    document = Document.parse(str(page), _fenced, _hidden)
    return [
        Block(
            page,
            language=example.parsed["language"],
            title=example.parsed["title"],
            source=example.parsed["source"],
            line=example.line + 1,
        )
        for example in document.examples()
    ]


def _fenced(document: Document) -> Iterator[Region]:
    for region in RawFencedCodeBlockLexer(_INFO)(document):
        yield _parsed(region, str(region.lexemes["info"]))


def _hidden(document: Document) -> Iterator[Region]:
    for region in DirectiveInHTMLCommentLexer("run")(document):
        yield _parsed(region, str(region.lexemes["arguments"]))


def _parsed(region: Region, info: str) -> Region:
    language, _, rest = info.strip().partition(" ")
    title = _TITLE.search(rest)
    region.parsed = {
        "language": language,
        "title": "" if title is None else title["title"],
        "source": str(region.lexemes["source"]),
    }
    return region
