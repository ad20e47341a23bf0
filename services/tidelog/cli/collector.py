"""How Python collects garbage in the roles that keep many objects."""

from __future__ import annotations

import gc


def tune_collector() -> None:
    """Let Python look for garbage in cycles less often.

    The roles keep many objects for long and make hardly any cycles. With the default thresholds the collector
    goes over all of them again and again: up to 0.8 s at a time with 60,000 jobs, a seventh of an engine's
    CPU.
    """
    gc.set_threshold(50_000, 20, 1_000)
