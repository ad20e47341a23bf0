"""From words on the command line to values: JSON, times and tags; what cannot be one is wrong use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.cli.exits import Refused, WrongUse

if TYPE_CHECKING:
    from datetime import datetime

    from tidelog.handler.jobs import Retry
    from tidelog_events.identity import QueueName
    from tidelog_events.jsontext import Json
    from tidelog_events.wire import Tag


def read_json(option: str, text: str) -> Json:
    """One JSON value, with whole numbers of any size."""
    from tidelog_events.jsontext import NotJson, loads

    try:
        return loads(text.encode("utf-8", "surrogateescape"))
    except NotJson as error:
        raise WrongUse(
            f"{option} is not JSON: {error}. A text needs its quotes, for example {option} '\"hello\"'."
        ) from None


def read_time(option: str, text: str) -> datetime:
    """An RFC 3339 time with an offset."""
    from tidelog_events.instants import NotAnInstant, parse_instant, to_datetime

    try:
        return to_datetime(parse_instant(text))
    except NotAnInstant as error:
        raise WrongUse(f"{option} is {error}.") from None


def read_queue(text: str) -> QueueName:
    """The name of a queue."""
    from tidelog_events.identity import InvalidName, queue_name

    try:
        return queue_name(text)
    except InvalidName as error:
        raise Refused("Invalid", f"{error}.") from None


def read_tag(text: str) -> Tag:
    """`key=value`, or a label without an equals sign."""
    key, equals, value = text.partition("=")
    return (key, value) if equals else key


def spellings_of_tag(text: str) -> tuple[Tag, ...]:
    """Every tag that is shown as this text: a label may hold an equals sign too."""
    tag = read_tag(text)
    return (tag,) if tag == text else (tag, text)


def read_retry(max_attempts: int | None, delays: str | None) -> Retry | None:
    """The retry policy of `--max-attempts` and `--delays`; None where neither is given."""
    from tidelog.handler.jobs import Retry
    from tidelog_events.retry import DEFAULT_MAX_ATTEMPTS

    if max_attempts is None and delays is None:
        return None
    seconds: list[float] | None = None
    if delays is not None:
        try:
            seconds = [float(part) for part in delays.split(",")]
        except ValueError:
            raise WrongUse(f"--delays is {delays!r}; write seconds, as in 1,5,30.") from None
    try:
        return Retry(DEFAULT_MAX_ATTEMPTS if max_attempts is None else max_attempts, seconds)
    except ValueError as error:
        raise WrongUse(f"--max-attempts and --delays do not do: {error}.") from None


def read_weights(text: str) -> dict[str, int]:
    """`a=6,b=3`."""
    weights: dict[str, int] = {}
    for part in text.split(","):
        queue, _, number = part.strip().partition("=")
        if not queue or not number.isascii() or not number.isdecimal() or queue in weights:
            raise WrongUse(f"--weights is {text!r}; write each queue once with its weight, as in a=6,b=3.")
        weights[queue] = int(number)
    return weights


def read_queues(text: str) -> tuple[str, ...]:
    """`a,b`, the most urgent first."""
    return tuple(part.strip() for part in text.split(","))
