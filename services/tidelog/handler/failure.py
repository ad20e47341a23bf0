"""A failed attempt as text: type, message and stack, whatever the exception is like.

A handler may raise anything: an exception whose `__str__` raises, a chain of thousands of causes, a group, a
recursion error, texts that no UTF-8 text can hold. The report of a failure must not fail itself, so every
step is bounded, and nothing here recurses over what a handler made.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Final

from tidelog_events.bounds import MAX_TEXT_BYTES, cut_text

MAX_ERROR_BYTES: Final = 1_024
_MAX_LINKS = 12
"""Exceptions of one chain that are shown: half from the raised one on, half from its root cause back."""
_MAX_WALK = 10_000
_MAX_FRAMES = 40
_MAX_MEMBERS = 10
_MAX_GROUP_DEPTH = 3
_MAX_MESSAGE_CHARS = 4_000
_CAUSE = "The above exception was the direct cause of the exception shown before it:"
_CONTEXT = "The exception shown before it was raised while this one was handled:"


@dataclass(frozen=True, slots=True)
class FailureText:
    """What is stored of a failed attempt.

    Attributes:
        error: type and message, at most 1,024 bytes; the cause of a job that is dead-lettered.
        detail: type, message and stack with causes, at most 8,192 bytes; head and tail are kept.
    """

    error: str
    detail: str


def failure_text(error: BaseException) -> FailureText:
    """Describe an exception. Never raises what the exception could bring about."""
    try:
        detail = "\n".join(_chain_lines(error))
    except BaseException as broken:  # noqa: BLE001  every attribute may be the handler's code
        detail = f"{_headline(error)}\n(its details cannot be read: {_type_name(broken)})"
    return FailureText(
        error=cut_text(_storable(_headline(error)), MAX_ERROR_BYTES),
        detail=keep_head_and_tail(_storable(detail)),
    )


def keep_head_and_tail(text: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Cut the middle out of a text that is too long, between characters, and say how much is gone."""
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    mark = f"\n… {len(encoded) - max_bytes} bytes or more are cut here …\n"
    room = max_bytes - len(mark.encode())
    head = encoded[: room // 2].decode(errors="ignore")
    tail = encoded[-(room - room // 2) :].decode(errors="ignore")
    return f"{head}{mark}{tail}"


def _storable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _type_name(error: BaseException) -> str:
    cls = type(error)
    try:
        module, name = str(cls.__module__), str(cls.__qualname__)
    except BaseException:  # noqa: BLE001  a metaclass is the handler's code
        return "an exception of an unnameable type"
    return name if module == "builtins" else f"{module}.{name}"


def _message(error: BaseException) -> str:
    try:
        text = str(error)
        return text if len(text) <= _MAX_MESSAGE_CHARS else keep_head_and_tail(_storable(text))
    except BaseException:  # noqa: BLE001  __str__ is the handler's code
        return "(its message cannot be read: __str__ raised)"


def _headline(error: BaseException) -> str:
    message = _message(error)
    return f"{_type_name(error)}: {message}" if message else _type_name(error)


def _chain_lines(error: BaseException) -> list[str]:
    """The exception first, then what led to it; of a long chain the beginning and the root."""
    links = _links(error)
    lines: list[str] = []
    hidden = len(links) - _MAX_LINKS
    for number, (why, link) in enumerate(links):
        if hidden > 0 and _MAX_LINKS // 2 <= number < _MAX_LINKS // 2 + hidden:
            if number == _MAX_LINKS // 2:
                lines += ["", f"… {hidden} more exceptions of this chain …"]
            continue
        if why:
            lines += ["", why, ""]
        lines += _exception_lines(link, depth=0)
    return lines


def _links(error: BaseException) -> list[tuple[str, BaseException]]:
    links: list[tuple[str, BaseException]] = []
    seen: set[int] = set()
    why, link = "", error
    while len(links) < _MAX_WALK and id(link) not in seen:
        seen.add(id(link))
        links.append((why, link))
        if link.__cause__ is not None:
            why, link = _CAUSE, link.__cause__
        elif link.__context__ is not None and not link.__suppress_context__:
            why, link = _CONTEXT, link.__context__
        else:
            break
    return links


def _exception_lines(error: BaseException, depth: int) -> list[str]:
    lines = [_headline(error)]
    lines += [f"  note: {note}" for note in _notes(error)]
    lines += _stack_lines(error.__traceback__)
    if isinstance(error, BaseExceptionGroup):
        members = error.exceptions
        for number, member in enumerate(members[:_MAX_MEMBERS], 1):
            lines.append(f"  [{number} of {len(members)}]")
            if depth < _MAX_GROUP_DEPTH:
                lines += [f"    {line}" for line in _exception_lines(member, depth + 1)]
            else:
                lines.append(f"    {_headline(member)}")
        if len(members) > _MAX_MEMBERS:
            lines.append(f"  … {len(members) - _MAX_MEMBERS} more …")
    return lines


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", None)
    return [note for note in notes[:_MAX_MEMBERS] if isinstance(note, str)] if isinstance(notes, list) else []


def _stack_lines(trace: TracebackType | None) -> list[str]:
    """The frames, outermost first; of a deep stack (a recursion) the outer and the inner ones."""
    frames = list(traceback.walk_tb(trace))
    hidden = len(frames) - _MAX_FRAMES
    if hidden <= 0:
        return _frame_lines(frames)
    half = _MAX_FRAMES // 2
    return [*_frame_lines(frames[:half]), f"  … {hidden} more frames …", *_frame_lines(frames[-half:])]


def _frame_lines(frames: list[tuple[FrameType, int]]) -> list[str]:
    summary = traceback.StackSummary.extract(iter(frames))
    return [
        line.rstrip("\n") for frame in summary for line in summary.format_frame_summary(frame).splitlines()
    ]
