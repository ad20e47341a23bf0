"""The loop that feeds Postgres from the log, and the rebuild of what it feeds."""

from tidelog.projector.projector import PositionNotInLog, Projector, ProjectorCounters
from tidelog.projector.rebuild import RebuildProgress, rebuild

__all__ = ["PositionNotInLog", "Projector", "ProjectorCounters", "RebuildProgress", "rebuild"]
