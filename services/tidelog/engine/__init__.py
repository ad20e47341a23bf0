"""The single writer of a partition: read, decide, commit, answer."""

from tidelog.engine.engine import Engine, EngineCounters, EngineSettings
from tidelog.engine.errors import EngineError
from tidelog.engine.processor import ProcessorSettings

__all__ = ["Engine", "EngineCounters", "EngineError", "EngineSettings", "ProcessorSettings"]
