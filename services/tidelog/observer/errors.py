"""What is wrong with an observer itself."""

from __future__ import annotations

from tidelog_events.errors import TidelogError


class BadObserver(TidelogError):
    """An observer is declared in a way that cannot work. Raised at the declaration."""


class UnknownObserver(TidelogError):
    """The application declares no observer of that id, or none has ever run here."""


class OffsetNotInLog(TidelogError):
    """The log does not hold what an observer must read next: trimmed too early, or another log."""


class ObserverRuns(TidelogError):
    """An observer that is to be moved or forgotten is running: it would go on, and commit where it is."""
