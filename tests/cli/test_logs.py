"""What a process says on standard error: of the Kafka client no more than helps."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tidelog.cli.logs import LogLevel, set_up_logging


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Other tests find logging as it was."""
    root, client = logging.getLogger(), logging.getLogger("aiokafka")
    handlers, levels = list(root.handlers), (root.level, client.level)
    yield
    root.handlers[:] = handlers
    for logger, level in zip((root, client), levels, strict=True):
        logger.setLevel(level)


def say_it_failed(name: str) -> None:
    error = ConnectionError("the broker is away")
    logging.getLogger(name).error("Unable connect to node %s", 1, exc_info=error)


@pytest.mark.parametrize("name", ["aiokafka", "aiokafka.producer.sender"])
def test_the_kafka_client_says_the_same_thing_once_and_without_a_traceback(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    set_up_logging(LogLevel.INFO)
    for _ in range(3):
        say_it_failed(name)
    logging.getLogger(name).error("Unable connect to node %s", 2)
    said = capsys.readouterr().err
    assert said.count("node 1") == said.count("node 2") == 1
    assert "ConnectionError" not in said


def test_others_are_heard_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogLevel.INFO)
    for _ in range(2):
        say_it_failed("tidelog.engine")
    assert capsys.readouterr().err.count("ConnectionError") == 2


def test_a_command_that_ends_soon_leaves_it_to_its_own_message(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogLevel.WARNING, is_brief=True)
    say_it_failed("aiokafka")
    assert capsys.readouterr().err == ""


def test_who_looks_for_a_fault_hears_everything(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogLevel.WARNING, is_brief=True)
    set_up_logging(LogLevel.DEBUG)
    for _ in range(2):
        say_it_failed("aiokafka")
    assert capsys.readouterr().err.count("ConnectionError") == 2
