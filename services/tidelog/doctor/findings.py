"""What a look at an installation has found."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Health(StrEnum):
    """How something is, the best first."""

    OK = "ok"
    WARNING = "warning"
    """It works, and somebody should look at it."""
    ERROR = "error"
    """It does not work, or will not for long."""


_ORDER: Final = tuple(Health)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        check: the name of the check, for `--only`.
        health: how it is.
        message: what is so.
        advice: what to do; None when there is nothing to do.
        unreachable: whether a service could not be reached.
    """

    check: str
    health: Health
    message: str
    advice: str | None = None
    unreachable: bool = False


def worst(findings: Collection[Finding]) -> Health:
    """The health of all of it."""
    return max((finding.health for finding in findings), key=_ORDER.index, default=Health.OK)
