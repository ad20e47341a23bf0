"""The loop that feeds Postgres from the log, and the rebuild of what it feeds."""

from tidelog.projector.projector import Projector, ProjectorCounters
from tidelog.projector.rebuild import RebuildProgress, rebuild

__all__ = ["Projector", "ProjectorCounters", "RebuildProgress", "rebuild"]
