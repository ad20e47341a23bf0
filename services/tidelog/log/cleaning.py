"""How eagerly a log of our own (memory, SQLite) forgets: the numbers that both adapters share."""

from __future__ import annotations

TOMBSTONE_SECONDS = 3600.0
"""How long a tombstone stays in a compacted topic: a reader on its way from the start must still meet it."""

COMPACT_AFTER = 10_000
"""A partition is compacted when so many records came since the last time: a restore reads those as well."""
