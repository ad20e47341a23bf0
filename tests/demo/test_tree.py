"""Which files the demonstration works on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidelog.demo import tree
from tidelog.demo.tree import NotAFolder, survey


def names(root: Path) -> list[str]:
    """What was found, in order, folder by folder."""
    return [str(file.path.relative_to(root)) for folder in survey(root).folders for file in folder.files]


def test_finds_files_of_all_depths_each_folder_after_those_in_it(tmp_path: Path) -> None:
    for name in ("b/inner/deep.txt", "b/x", "a/y", "top", "ä ö\nü"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    found = survey(tmp_path)
    assert [str(folder.path.relative_to(tmp_path)) for folder in found.folders] == ["a", "b/inner", "b", "."]
    assert names(tmp_path) == ["a/y", "b/inner/deep.txt", "b/x", "top", "ä ö\nü"]
    assert found.files == 5


def test_leaves_out_what_is_nobodys_work_and_counts_it(tmp_path: Path) -> None:
    for name in (".git/HEAD", ".venv/x", "p/__pycache__/m.pyc", "p/m.py", "p/p.egg-info/PKG-INFO"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert names(tmp_path) == ["p/m.py"]
    assert survey(tmp_path).left_out == {"caches, environments and the like": 4}


def test_follows_no_links_and_opens_no_pipes(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert names(tmp_path) == ["file"]
    assert survey(tmp_path).left_out == {"symbolic links": 3, "devices, pipes and sockets": 1}


def test_goes_any_depth_without_recursion(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(300):
        folder /= "d"
        folder.mkdir()
    (folder / "bottom").touch()
    assert len(survey(tmp_path).folders) == 301


def test_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_FILES", 2)
    monkeypatch.setattr(tree, "MAX_FILE_BYTES", 1 << 20)
    for name in "abc":
        (tmp_path / name).touch()
    (tmp_path / "0-large").write_bytes(b"x" * ((1 << 20) + 1))
    found = survey(tmp_path)
    assert names(tmp_path) == ["a", "b"]
    assert found.left_out == {"files above 1 MiB": 1, "files beyond 2 or 1 GiB in all": 1}


@pytest.mark.parametrize("name", ["none", "file"])
def test_what_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotAFolder, match=name):
        survey(tmp_path / name)
