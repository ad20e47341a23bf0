"""What is measured and how it is judged: figures, their floors, and the readings of a run."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Protocol


class Floor(Protocol):
    """What a figure has to keep."""

    @property
    def text(self) -> str: ...

    def is_kept_by(self, value: float) -> bool: ...


@dataclass(frozen=True, slots=True)
class AtLeast:
    """For rates."""

    bound: float

    @property
    def text(self) -> str:
        return f"≥ {self.bound:,.0f}"

    def is_kept_by(self, value: float) -> bool:
        return value >= self.bound


@dataclass(frozen=True, slots=True)
class AtMost:
    """For waits."""

    bound: float

    @property
    def text(self) -> str:
        return f"≤ {self.bound:,.0f}"

    def is_kept_by(self, value: float) -> bool:
        return value <= self.bound


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that a measure yields.

    Attributes:
        label: for people.
        unit: `jobs/s`, `commands/s` or `ms`.
        floor: what it must keep on two cores with the embedded log, one process a role; None where nothing
            is promised.
        floor_on_kafka: the same on Kafka.
    """

    label: str
    unit: str
    floor: Floor | None = None
    floor_on_kafka: Floor | None = None

    def floor_on(self, log: str | None) -> Floor | None:
        """What it must keep on the log of that address."""
        return self.floor_on_kafka if log is not None and log.startswith("kafka:") else self.floor


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure as it was measured, once or several times.

    Attributes:
        measure: the name of the measure that it comes from.
        log: the address of the log; None for what needs no log.
        values: one for each repetition.
    """

    measure: str
    figure: Figure
    log: str | None
    values: tuple[float, ...]

    @property
    def value(self) -> float:
        """The median of the repetitions."""
        return median(self.values)

    @property
    def is_kept(self) -> bool | None:
        """Whether the floor is kept; None when there is none."""
        floor = self.figure.floor_on(self.log)
        return None if floor is None else floor.is_kept_by(self.value)
