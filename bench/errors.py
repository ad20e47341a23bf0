"""Why a measure gave no figure."""

from __future__ import annotations

from tidelog_events.errors import TidelogError


class MeasureFailed(TidelogError):
    """A measure could not be taken, or what it ran did not do what it must: there is no figure then."""
