"""What a page claims and is not so is found: the checks of pages can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.blocks import blocks_of
from tests.docs.page import Page

NO_DATABASE = "postgresql://nobody@localhost:1/none"
"""None of these pages comes as far as to Postgres."""


def play(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "page").mkdir()
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    with Page(folder / "page", NO_DATABASE, monkeypatch) as running:
        for block in blocks_of(page):
            running.run(block)
        running.end()


FALSE = {
    "a language that nobody checks": ("```rust\nfn main() {}\n```", "nothing checks blocks of rust"),
    "a block without a language": ("```\nwhat is this\n```", "nothing checks blocks of no language"),
    "another output": ('```python\nprint(2)\n```\n\n```text title="Output"\n3\n```', "this was printed"),
    "another output of a command": ("```console\n$ tidelog --version\ntidelog 77\n```", "this was printed"),
    "a command that fails": ("```console\n$ tidelog replay nothing.jsonl\n```", r"tidelog replay"),
    "another exit code": ("```console\n$ tidelog --version\n$ echo $?\n3\n```", "this was printed"),
    "a command that is not there": ("```bash\ntidelog fly\n```", "no such command"),
    "an option that is not there": ("```bash\ntidelog jobs --wings 2\n```", "No such option"),
    "a program that nobody knows": ("```bash\nrm -rf everything\n```", "nothing checks rm"),
    "a target that is not there": ("```bash\nmake tea\n```", "no such target"),
    "a setting that is not there": ("```bash\nexport TIDELOG_COLOUR=red\n```", "is no setting of Tidelog"),
    "a setting of the file that is not there": (
        '```toml title="tidelog.toml"\ncolour = "red"\n```',
        "is no setting of Tidelog",
    ),
    "a field that is not there": (
        '```json\n{"type": "cancel", "job_id": "a/b", "why": "so"}\n```',
        "as one of commands",
    ),
    "no message of ours": ('```json\n{"hello": "world"}\n```', "neither command"),
    "a file that nothing uses": ('```python title="shop.py"\nx = 1\n```', "files that no later block"),
    "a mistake that is not seen": ("<!-- run: python\nraise AssertionError('hidden')\n-->", "hidden"),
}


@pytest.mark.parametrize(("text", "complaint"), FALSE.values(), ids=FALSE.keys())
def test_what_is_not_so_is_found(
    text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        play(text, tmp_path, monkeypatch)


TRUE = {
    "what varies": '```python\nprint("2026-11-30T03:36:22.5Z", 32 * "a")\n```\n\n'
    '```text title="Output"\n2025-01-01T00:00:00Z  0199f3c2a7d47e8fb2b1c9d0e1f2a3b4\n```',
    "what is left out": '```python\nprint("a b c\\nx\\ny")\n```\n\n```text title="Output"\na … c\n…\n```',
    "a refusal that is said": "```console\n$ tidelog replay nothing.jsonl\n…\n$ echo $?\n2\n```",
    "an await of one's own": "```python\nimport asyncio\n\nawait asyncio.sleep(0)\n```",
    "names of an earlier block": "```python\nx = 1\n```\n\n```python\nassert x == 1\n```",
    "blocks within a list": "- so\n\n    ```python\n    if True:\n        pass\n    ```\n",
}


@pytest.mark.parametrize("text", TRUE.values(), ids=TRUE.keys())
def test_what_is_so_passes(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(text, tmp_path, monkeypatch)
