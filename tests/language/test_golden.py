"""Events are for ever: what version 1 wrote is read as it was, and written as it was."""

from __future__ import annotations

import orjson
import pytest
from tests.language.golden import GOLDEN, LIFE_FILE, RECORD_FILE, contents, fold
from tests.language.samples import ANSWERS, TRANSITIONS

from tidelog_events.codec import decode_answer, decode_transition
from tidelog_events.record import JobRecord
from tidelog_events.replies import Answer
from tidelog_events.transitions import TRANSITION_CLASSES, JobFact, Transition
from tidelog_events.wire import from_wire, to_wire

CONTENTS = contents()


def stored(path: str) -> bytes:
    return (GOLDEN / path).read_bytes().removesuffix(b"\n")


@pytest.mark.parametrize("path", CONTENTS)
def test_it_is_written_as_it_always_was(path: str) -> None:
    assert stored(path) == CONTENTS[path]


@pytest.mark.parametrize(("name", "event"), TRANSITIONS.items(), ids=list(TRANSITIONS))
def test_a_transition_is_read_as_it_was_meant(name: str, event: Transition) -> None:
    assert decode_transition(stored(f"transitions/{name}.json")) == event


@pytest.mark.parametrize(("name", "answer"), ANSWERS.items(), ids=list(ANSWERS))
def test_an_answer_is_read_as_it_was_meant(name: str, answer: Answer) -> None:
    assert decode_answer(stored(f"answers/{name}.json")) == answer


def test_a_stored_life_folds_into_the_stored_record() -> None:
    events = [decode_transition(line) for line in stored(LIFE_FILE).splitlines()]
    facts = [event for event in events if isinstance(event, JobFact)]

    assert len(facts) == len(events)
    record = fold(facts)
    assert orjson.dumps(to_wire(record)) == stored(RECORD_FILE)
    assert from_wire(JobRecord, orjson.loads(orjson.dumps(to_wire(record)))).job_id == record.job_id


def test_every_type_has_its_file_and_no_file_lacks_its_sample() -> None:
    assert {cls.TYPE for cls in TRANSITION_CLASSES} <= set(TRANSITIONS)
    files = {str(file.relative_to(GOLDEN)) for file in GOLDEN.rglob("*.json*")}
    assert files == set(CONTENTS)
