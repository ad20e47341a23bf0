"""The typed topic for Faust agents: what a record of the log is to them."""

from __future__ import annotations

import pytest
from tests.language.samples import LIFE

from tidelog.observer.faust import NeedsKafka, TransitionCodec, faust_app
from tidelog.settings import Settings
from tidelog_events.codec import encode_transition
from tidelog_events.transitions import JobFact


@pytest.mark.parametrize("event", LIFE, ids=lambda event: event.TYPE)
def test_a_record_is_a_transition(event: JobFact) -> None:
    assert TransitionCodec().loads(encode_transition(event)) == event


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (b"{", "is passed over"),
        (b'{"type": "enqueued", "version": 2}', "version 2"),
        (b'{"type": "new"}', ""),
    ],
)
def test_what_cannot_be_read_is_none_and_said(
    record: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert TransitionCodec().loads(record) is None
    assert said in caplog.text


def test_only_engines_write() -> None:
    with pytest.raises(TypeError, match="only the engine writes"):
        TransitionCodec().dumps(LIFE[0])


def test_the_embedded_log_is_refused() -> None:
    with pytest.raises(NeedsKafka, match="kafka://host:port"):
        faust_app(Settings(log="sqlite:log.db"), "alarms")
