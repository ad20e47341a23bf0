"""Failures as text: hostile exceptions, long chains, deep stacks, groups, texts that cannot be stored."""

from __future__ import annotations

import threading

import pytest

from tidelog.handler.failure import MAX_ERROR_BYTES, failure_text, keep_head_and_tail
from tidelog_events.bounds import MAX_TEXT_BYTES


class TwoArguments(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


class WithLock(Exception):
    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()


class StrRaises(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


class StrExits(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Liar(Exception):
    def __getattribute__(self, name: str) -> object:
        raise KeyError(name)  # whatever is asked


def raised(error: BaseException) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011  whatever it is
        raise error
    return caught.value


def recursion() -> None:
    recursion()


def chained(links: int) -> BaseException:
    error: BaseException = ValueError("the root")
    for number in range(links):
        following = KeyError(f"link {number}")
        following.__cause__ = error
        error = following
    return error


def test_type_message_and_stack_are_told() -> None:
    text = failure_text(raised(TwoArguments("one", "two")))
    assert text.error == f"{TwoArguments.__module__}.TwoArguments: one and two"
    assert text.detail.startswith(text.error)
    assert "raise error" in text.detail


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (WithLock(), "locked"),
        (StrRaises(), "cannot be read"),
        (StrExits(), "cannot be read"),
        (SystemExit(2), "SystemExit: 2"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (ValueError("\ud800 surrogate"), r"\ud800 surrogate"),
        (ValueError("nul \x00"), "nul \x00"),
    ],
)
def test_hostile_exceptions_are_told_as_far_as_they_allow(error: BaseException, told: str) -> None:
    text = failure_text(raised(error))
    assert told in text.error
    text.detail.encode()


def test_an_exception_without_readable_attributes_is_told_by_its_type() -> None:
    text = failure_text(Liar("x"))
    assert "Liar" in text.error
    assert "cannot be read" in text.detail


def test_a_recursion_error_keeps_head_and_tail() -> None:
    with pytest.raises(RecursionError) as caught:
        recursion()
    detail = failure_text(caught.value).detail
    assert detail.startswith("RecursionError: maximum recursion depth")
    assert "more frames" in detail
    assert len(detail.encode()) <= MAX_TEXT_BYTES


def test_a_long_chain_keeps_what_was_raised_and_the_root() -> None:
    detail = failure_text(chained(2_000)).detail
    assert "link 1999" in detail
    assert "the root" in detail
    assert "more exceptions" in detail
    assert len(detail.encode()) <= MAX_TEXT_BYTES


def test_a_chain_in_a_circle_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert failure_text(first).detail.count("ValueError: ") == 2


def test_a_suppressed_context_is_not_told() -> None:
    error = ValueError("shown")
    error.__context__ = KeyError("hidden")
    assert "hidden" in failure_text(error).detail
    error.__suppress_context__ = True
    assert "hidden" not in failure_text(error).detail


def test_the_members_of_a_group_are_told() -> None:
    group = ExceptionGroup(
        "all failed", [ValueError("a"), KeyError("b"), ExceptionGroup("in", [OSError("c")])]
    )
    text = failure_text(raised(group))
    assert text.error == "ExceptionGroup: all failed (3 sub-exceptions)"
    for told in ("ValueError: a", "KeyError: 'b'", "OSError: c"):
        assert told in text.detail


def test_groups_of_any_depth_and_width_are_bounded() -> None:
    error: Exception = ValueError("inmost")
    for _ in range(500):
        error = ExceptionGroup("deep", [error])
    wide = ExceptionGroup("wide", [ValueError(str(number)) for number in range(5_000)])
    for group in (error, wide):
        assert len(failure_text(group).detail.encode()) <= MAX_TEXT_BYTES
    assert "4990 more" in failure_text(wide).detail


def test_notes_are_told() -> None:
    error = ValueError("x")
    error.add_note("while reading page 3")
    assert "note: while reading page 3" in failure_text(error).detail


class ExitingNote(str):
    """A note whose text is the handler's code, which wants to end the process."""

    def __format__(self, spec: str) -> str:
        raise SystemExit("from a note")


class ExitingName(type):
    """A class of exceptions that does not tell its name."""

    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise SystemExit("from a name")


def test_a_note_that_exits_does_not() -> None:
    error = ValueError("x")
    error.__notes__ = [ExitingNote("n")]
    text = failure_text(raised(error))
    assert text.error == "ValueError: x"
    assert "SystemExit" in text.detail


def test_a_type_that_exits_does_not() -> None:
    unnameable = ExitingName("Unnameable", (Exception,), {})
    assert failure_text(raised(unnameable("x"))).error == "an exception of an unnameable type: x"


def test_a_huge_message_is_cut_but_keeps_its_ends() -> None:
    text = failure_text(ValueError("begin" + "ü" * 1_000_000 + "finish"))
    assert len(text.error.encode()) <= MAX_ERROR_BYTES
    assert len(text.detail.encode()) <= MAX_TEXT_BYTES
    assert "begin" in text.detail
    assert "finish" in text.detail


def test_a_cut_falls_between_characters() -> None:
    text = keep_head_and_tail("€" * 10_000)
    assert len(text.encode()) <= MAX_TEXT_BYTES
    assert text.startswith("€")
    assert text.endswith("€")
    assert keep_head_and_tail("x" * MAX_TEXT_BYTES) == "x" * MAX_TEXT_BYTES
