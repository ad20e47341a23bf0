"""Draws the states of a job and the steps between them: `python -m scripts.docs_site.state_diagram`.

Where things stand is said here; which steps there are is not, a test compares them with the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from xml.sax.saxutils import escape

from tidelog_events.states import JobState

FILE: Final = Path(__file__).parents[2] / "docs" / "assets" / "states.svg"

Step: TypeAlias = tuple[JobState | None, JobState]

_WIDTH, _HEIGHT = 1000, 560
_BOX_WIDTH, _BOX_HEIGHT = 164, 52
_BIRTH: Final = (58, 280)


@dataclass(frozen=True, slots=True)
class _Box:
    """A state: its middle, what it means, and its colours."""

    x: int
    y: int
    says: str
    fill: str
    line: str


_LIVE: Final = ("#e3f0f6", "#2b6c86")
_BUSY: Final = ("#fff3d9", "#b7791f")
_GOOD: Final = ("#dff3ea", "#1d7f5f")
_GREY: Final = ("#e9ecef", "#66727c")
_BAD: Final = ("#fbe4e1", "#b3392c")

_BOXES: Final = {
    JobState.AWAITING_PARENT: _Box(232, 118, "waits for other jobs", *_LIVE),
    JobState.SCHEDULED: _Box(232, 280, "runs when it is due", *_LIVE),
    JobState.LEASED: _Box(532, 280, "a worker has it", *_BUSY),
    JobState.CANCELLED: _Box(836, 118, "no longer wanted", *_GREY),
    JobState.SUCCEEDED: _Box(836, 226, "has its output", *_GOOD),
    JobState.DEAD_LETTERED: _Box(836, 334, "failed once too often", *_BAD),
    JobState.QUARANTINED: _Box(836, 442, "nobody can run it", *_BAD),
}


@dataclass(frozen=True, slots=True)
class _Arrow:
    """A step: its path, the transitions that make it, and where their names stand."""

    path: str
    types: tuple[str, ...] = ()
    at: tuple[int, int] = (0, 0)
    anchor: str = "middle"


_S, _A, _L = JobState.SCHEDULED, JobState.AWAITING_PARENT, JobState.LEASED
_OK, _C, _D, _Q = JobState.SUCCEEDED, JobState.CANCELLED, JobState.DEAD_LETTERED, JobState.QUARANTINED

ARROWS: Final[dict[Step, _Arrow]] = {
    (None, _S): _Arrow("M68 280 H146", ("enqueued",), (108, 270)),
    (None, _A): _Arrow("M58 270 V134 Q58 118 74 118 H146"),
    (None, _C): _Arrow("M58 140 V56 Q58 40 74 40 H820 Q836 40 836 56 V88"),
    (_A, _S): _Arrow("M232 144 V250", ("released",), (224, 202), "end"),
    (_A, _C): _Arrow("M314 104 H750", ("cancelled",), (532, 96)),
    (_S, _C): _Arrow("M290 254 C330 164 440 119 560 119 H750"),
    (_S, _L): _Arrow("M314 272 H446", ("leased",), (380, 262)),
    (_L, _S): _Arrow(
        "M500 306 C470 352 310 352 268 310",
        ("retry_scheduled", "lease_expired", "returned"),
        (384, 366),
    ),
    (_L, _C): _Arrow("M560 254 C584 180 650 134 720 134 H750"),
    (_L, _OK): _Arrow("M614 268 C670 258 690 226 750 226", ("succeeded",), (700, 216), "end"),
    (_L, _D): _Arrow(
        "M614 288 C670 298 690 334 750 334", ("dead_lettered", "lease_expired"), (748, 362), "end"
    ),
    (_L, _Q): _Arrow("M596 306 C630 380 670 442 750 442", ("quarantined",), (664, 444), "end"),
    (_D, _S): _Arrow("M918 334 H934 Q950 334 950 350 V500 Q950 516 934 516 H248 Q232 516 232 500 V312"),
    (_Q, _S): _Arrow(
        "M918 442 H934 Q950 442 950 458 V500 Q950 516 934 516 H248 Q232 516 232 500 V312",
        ("requeued",),
        (532, 506),
    ),
}
"""Every step that can be. `lease_expired` ends a life only when no attempt is left."""

_STYLE: Final = (
    "text{font-family:system-ui,sans-serif}"
    ".name{font-size:17px;font-weight:600}.says{font-size:12.5px;fill:#46545e}"
    ".type{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;fill:#1b4b5e;"
    "paint-order:stroke;stroke:#fbfdfe;stroke-width:5px;stroke-linejoin:round}"
    ".step{fill:none;stroke:#5b7684;stroke-width:1.8}"
)


_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="8" markerHeight="8"'
    ' orient="auto"><path d="M0 1 9 5 0 9Z" fill="#5b7684"/></marker></defs>'
)


def draw() -> str:
    """The picture as SVG. It has a ground of its own, so that it can be read on light and dark pages."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        "<title>The states of a job and the transitions between them</title>",
        f"<style>{_STYLE}</style>",
        _TIP,
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="14" fill="#fbfdfe"/>',
        *(f'<path class="step" marker-end="url(#tip)" d="{arrow.path}"/>' for arrow in ARROWS.values()),
        f'<circle cx="{_BIRTH[0]}" cy="{_BIRTH[1]}" r="9" fill="#1b4b5e"/>',
        *(_box(state.value, box) for state, box in _BOXES.items()),
        *(_names(arrow) for arrow in ARROWS.values() if arrow.types),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _box(name: str, box: _Box) -> str:
    x, y = box.x - _BOX_WIDTH // 2, box.y - _BOX_HEIGHT // 2
    return (
        f'<rect x="{x}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="10" fill="{box.fill}"'
        f' stroke="{box.line}" stroke-width="1.6"/>'
        f'<text class="name" x="{box.x}" y="{box.y - 2}" text-anchor="middle" fill="{box.line}">{name}</text>'
        f'<text class="says" x="{box.x}" y="{box.y + 16}" text-anchor="middle">{escape(box.says)}</text>'
    )


def _names(arrow: _Arrow) -> str:
    x, y = arrow.at
    lines = "".join(
        f'<tspan x="{x}" dy="{16 if index else 0}">{name}</tspan>' for index, name in enumerate(arrow.types)
    )
    return f'<text class="type" x="{x}" y="{y}" text-anchor="{arrow.anchor}">{lines}</text>'


if __name__ == "__main__":
    FILE.write_text(draw(), encoding="utf-8")
