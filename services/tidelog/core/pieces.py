"""Cutting a long answer into replies that a log takes (contract section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from tidelog_events.bounds import MAX_REPLY_BYTES

Row = TypeVar("Row")

# Of a reply without its rows: ids, names and numbers, all bounded.
_FRAME_BYTES = 2_048


def in_pieces(rows: Iterable[Row], size: Callable[[Row], int]) -> list[list[Row]]:
    """Cut rows so that no piece is over the bound of a reply; at least one piece, perhaps an empty one.

    Args:
        rows: in their order.
        size: the most bytes that a row takes as JSON.
    """
    pieces: list[list[Row]] = [[]]
    total = _FRAME_BYTES
    for row in rows:
        row_size = size(row)
        if pieces[-1] and total + row_size > MAX_REPLY_BYTES:
            pieces.append([])
            total = _FRAME_BYTES
        pieces[-1].append(row)
        total += row_size
    return pieces
