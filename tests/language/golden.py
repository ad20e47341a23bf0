"""The golden files of version 1: how every event and answer is written, for ever.

`python -m tests.language.golden` writes the files that are missing, for new types. It never changes one
that is there: a released event stays readable as it was written (see the README of the folder).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import orjson
from tests.language.samples import ANSWERS, LIFE, TRANSITIONS

from tidelog_events.codec import encode_answer, encode_transition
from tidelog_events.record import JobRecord
from tidelog_events.transitions import Enqueued, JobFact
from tidelog_events.wire import to_wire

GOLDEN: Final = Path(__file__).parent / "golden" / "v1"
LIFE_FILE: Final = "life.jsonl"
RECORD_FILE: Final = "record.json"


def fold(events: list[JobFact]) -> JobRecord:
    """The record of the job whose whole life these are."""
    born, *later = events
    if not isinstance(born, Enqueued):
        raise TypeError(f"a life starts with an enqueued event, not with {born.TYPE}")
    record = JobRecord.born(born)
    for event in later:
        record.apply(event)
    return record


def contents() -> dict[str, bytes]:
    """Every golden file by its path below the folder, as this code writes it."""
    return {
        **{f"transitions/{name}.json": encode_transition(event) for name, event in TRANSITIONS.items()},
        **{f"answers/{name}.json": encode_answer(answer) for name, answer in ANSWERS.items()},
        LIFE_FILE: b"\n".join(map(encode_transition, LIFE)),
        RECORD_FILE: orjson.dumps(to_wire(fold(list(LIFE)))),
    }


def main() -> None:
    """Write what is missing and say so."""
    for path, written in contents().items():
        file = GOLDEN / path
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(written + b"\n")
            sys.stdout.write(f"wrote {file}\n")


if __name__ == "__main__":
    main()
