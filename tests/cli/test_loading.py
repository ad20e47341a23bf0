"""MODULE:APP: what is in the way is said in a sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.running import SHOP

from tidelog.app import App
from tidelog.cli.exits import WrongUse
from tidelog.cli.loading import load_app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with modules of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_finds_an_application_in_the_working_directory() -> None:
    found = load_app("shop:app")
    assert isinstance(found, App)
    assert {definition.wire_name for definition in found.registry} >= {"greet", "nap"}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("shop", "MODULE:APP"),
        ("shop:", "MODULE:APP"),
        ("shop.py:app", "name the module"),
        ("./shop:app", "name the module"),
        ("shopp:app", "There is no module 'shopp'"),
        ("shop.inner:app", "There is no module 'shop.inner'"),
        ("shop:ap", "Did you mean shop:app?"),
        ("shop:not_an_app", "of type int, not a tidelog.App. Did you mean shop:app?"),
    ],
)
def test_says_what_is_wrong(target: str, said: str) -> None:
    with pytest.raises(WrongUse, match=r".") as caught:
        load_app(target)
    assert said in str(caught.value)


def test_an_import_that_fails_is_placed(folder: Path) -> None:
    (folder / "broken.py").write_text("import shop\n\n1 / 0\n", encoding="utf-8")
    with pytest.raises(WrongUse) as caught:
        load_app("broken:app")
    assert "ZeroDivisionError" in str(caught.value)
    assert "broken.py, line 3" in str(caught.value)


def test_a_wrong_call_of_tidelog_is_placed_where_it_is_made(folder: Path) -> None:
    (folder / "wrong.py").write_text('from tidelog import App\n\nApp().job("")(print)\n', encoding="utf-8")
    with pytest.raises(WrongUse, match=r"wrong\.py, line 3\): "):
        load_app("wrong:app")


def test_a_module_that_is_missing_inside_is_not_mistaken_for_the_application(folder: Path) -> None:
    (folder / "needy.py").write_text("import no_such_package\n", encoding="utf-8")
    with pytest.raises(WrongUse) as caught:
        load_app("needy:app")
    assert "Importing 'needy' failed" in str(caught.value)
    assert "no_such_package" in str(caught.value)


def test_a_syntax_error_is_explained(folder: Path) -> None:
    (folder / "typo.py").write_text("def (:\n", encoding="utf-8")
    with pytest.raises(WrongUse, match="SyntaxError"):
        load_app("typo:app")
