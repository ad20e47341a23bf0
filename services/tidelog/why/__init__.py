"""Why a job is not running: the question that operators ask most, answered from Postgres and the log."""

from tidelog.why.answer import Reason, ReasonCode, Why
from tidelog.why.asking import ask_why

__all__ = ["Reason", "ReasonCode", "Why", "ask_why"]
