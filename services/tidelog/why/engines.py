"""Whether somebody decides for the job's partition."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.why.answer import Reason, ReasonCode
from tidelog.why.situation import Engine, Situation
from tidelog_events.jsontext import Json


def no_engine(situation: Situation) -> Iterator[Reason]:
    """That nobody does, if so."""
    details: dict[str, Json] = {"partition": situation.partition}
    if situation.engine is Engine.NONE:
        yield Reason(
            ReasonCode.NO_ENGINE,
            f"No engine serves partition {situation.partition}, where its queue lives: nothing is decided "
            "there. Start one: `tidelog engine`.",
            details,
        )
    elif situation.engine is Engine.CHANGING:
        yield Reason(
            ReasonCode.NO_ENGINE,
            "The engines share out their partitions just now, and nobody has partition "
            f"{situation.partition} yet. Ask again in a few seconds.",
            details,
        )
