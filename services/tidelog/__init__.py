"""Event-sourced background jobs: what applications import (contract section 8)."""

from tidelog.app import App
from tidelog.client.client import Client
from tidelog.client.errors import (
    BatchIncomplete,
    ClientClosed,
    CommandRefused,
    InvalidCommand,
    NoProjection,
    NotCancellable,
    NotRequeueable,
    NotSent,
    PayloadTooLarge,
    ProjectionBehind,
    ReplyTimeout,
    SendUnconfirmed,
    TooManyParents,
    UnexpectedReply,
    UnknownParent,
    WaitTimeout,
    WireNameTooLong,
)
from tidelog.client.newjob import NewJob
from tidelog.jobs import JobRequest, Retry
from tidelog.settings import Settings, SettingsError
from tidelog.worker.context import JobContext
from tidelog_events.errors import TidelogError
from tidelog_events.record import JobRecord
from tidelog_events.replies import Result
from tidelog_events.states import DependencyMode, JobState

__all__ = [
    "App",
    "BatchIncomplete",
    "Client",
    "ClientClosed",
    "CommandRefused",
    "DependencyMode",
    "InvalidCommand",
    "JobContext",
    "JobRecord",
    "JobRequest",
    "JobState",
    "NewJob",
    "NoProjection",
    "NotCancellable",
    "NotRequeueable",
    "NotSent",
    "PayloadTooLarge",
    "ProjectionBehind",
    "ReplyTimeout",
    "Result",
    "Retry",
    "SendUnconfirmed",
    "Settings",
    "SettingsError",
    "TidelogError",
    "TooManyParents",
    "UnexpectedReply",
    "UnknownParent",
    "WaitTimeout",
    "WireNameTooLong",
]
