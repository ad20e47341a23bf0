"""The loop that feeds Postgres from the log, and the rebuild of what it feeds."""

from tidelog.projector.alarms import AnotherLog, PositionNotInLog
from tidelog.projector.projector import Projector, ProjectorCounters
from tidelog.projector.rebuild import RebuildProgress, rebuild

__all__ = ["AnotherLog", "PositionNotInLog", "Projector", "ProjectorCounters", "RebuildProgress", "rebuild"]
