"""A log in memory, for tests and simulations: it keeps every promise of the port, and dies with its process.

A `MemoryStore` is what would be the broker; each `MemoryLog` is one process's connection to it. Connections
may live on different event loops in different threads.
"""

from tidelog.log.memory.log import MemoryLog
from tidelog.log.memory.store import MemoryStore

__all__ = ["MemoryLog", "MemoryStore"]
