"""The embedded log: one SQLite file that several processes of one host share."""

from tidelog.log.sqlite.file import LogFileError
from tidelog.log.sqlite.log import SqliteLog

__all__ = ["LogFileError", "SqliteLog"]
