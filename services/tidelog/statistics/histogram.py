"""Durations in buckets that grow by a tenth: percentiles within 5 %, in a size that stays."""

from __future__ import annotations

import math
from typing import Final

_GROWTH: Final = 1.1
_SMALLEST: Final = 0.001
"""In seconds. Everything shorter is one bucket."""
_LAST: Final = 250
"""The bucket of everything above about 8 months."""

Histogram = dict[str, int]
"""How many durations are in each bucket, by its number. Keys are text because it is kept as JSON."""


def add(histogram: Histogram, seconds: float) -> None:
    """Count a duration; a negative one, by clocks that disagree, as none."""
    key = str(_bucket(seconds))
    histogram[key] = histogram.get(key, 0) + 1


def percentile(histogram: Histogram, share: float) -> float | None:
    """The duration in seconds that `share` (0 to 1) of all stay at or below; None when there are none."""
    total = sum(histogram.values())
    if not total:
        return None
    wanted = max(1, math.ceil(total * share))
    seen = 0
    for bucket, count in sorted((int(key), count) for key, count in histogram.items()):
        seen += count
        if seen >= wanted:
            return _middle(bucket)
    raise ValueError(f"there is no percentile of share {share}: it goes from 0 to 1")


def _bucket(seconds: float) -> int:
    if seconds <= _SMALLEST:
        return 0
    return min(_LAST, math.ceil(math.log(seconds / _SMALLEST, _GROWTH)))


def _middle(bucket: int) -> float:
    """Where the error is the same to either end of the bucket."""
    if bucket == 0:
        return 0.0
    return _SMALLEST * _GROWTH**bucket * 2 / (1 + _GROWTH)
