"""What an engine cannot go on with."""

from __future__ import annotations

from tidelog_events.errors import TidelogError


class EngineError(TidelogError):
    """An engine cannot start, or a partition cannot be served."""
