"""Event-sourced background jobs: what applications import (contract section 8).

The names are imported when they are first asked for: `tidelog replay`, or one line of help, must not wait for
pydantic and the client of Postgres.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.app import App
    from tidelog.client.batch_errors import BatchIncomplete, BatchTooLarge, BatchUnconfirmed, NotSent
    from tidelog.client.client import Client
    from tidelog.client.errors import (
        ClientClosed,
        CommandRefused,
        InvalidCommand,
        NoProjection,
        NotCancellable,
        NotRequeueable,
        PayloadTooLarge,
        ProjectionBehind,
        ReplyTimeout,
        ScheduleNotFound,
        SendUnconfirmed,
        TooManyParents,
        UnexpectedReply,
        UnknownParent,
        WaitTimeout,
        WireNameTooLong,
    )
    from tidelog.client.newjob import NewJob
    from tidelog.client.schedule import Schedule
    from tidelog.handler.context import JobContext
    from tidelog.handler.jobs import JobRequest, Retry
    from tidelog.handler.signature import DefinitionError
    from tidelog.handler.verdicts import GiveUp, TryAgain
    from tidelog.observer.context import ObserverContext
    from tidelog.observer.errors import BadObserver
    from tidelog.scheduling.recurrence import daily, every, monthly, weekly
    from tidelog.settings import Settings, SettingsError
    from tidelog.why.answer import Reason, ReasonCode, Why
    from tidelog_events.errors import TidelogError
    from tidelog_events.record import JobRecord
    from tidelog_events.replies import Result
    from tidelog_events.schedule_view import ScheduleView
    from tidelog_events.states import CatchUp, DependencyMode, JobState
    from tidelog_events.transitions import JobTransition, Transition

__all__ = [
    "App",
    "BadObserver",
    "BatchIncomplete",
    "BatchTooLarge",
    "BatchUnconfirmed",
    "CatchUp",
    "Client",
    "ClientClosed",
    "CommandRefused",
    "DefinitionError",
    "DependencyMode",
    "GiveUp",
    "InvalidCommand",
    "JobContext",
    "JobRecord",
    "JobRequest",
    "JobState",
    "JobTransition",
    "NewJob",
    "NoProjection",
    "NotCancellable",
    "NotRequeueable",
    "NotSent",
    "ObserverContext",
    "PayloadTooLarge",
    "ProjectionBehind",
    "Reason",
    "ReasonCode",
    "ReplyTimeout",
    "Result",
    "Retry",
    "Schedule",
    "ScheduleNotFound",
    "ScheduleView",
    "SendUnconfirmed",
    "Settings",
    "SettingsError",
    "TidelogError",
    "TooManyParents",
    "Transition",
    "TryAgain",
    "UnexpectedReply",
    "UnknownParent",
    "WaitTimeout",
    "Why",
    "WireNameTooLong",
    "daily",
    "every",
    "monthly",
    "weekly",
]

_HOMES = (
    "tidelog.app",
    "tidelog.client.client",
    "tidelog.client.batch_errors",
    "tidelog.client.errors",
    "tidelog.client.newjob",
    "tidelog.client.schedule",
    "tidelog.handler.jobs",
    "tidelog.scheduling.recurrence",
    "tidelog.observer.context",
    "tidelog.observer.errors",
    "tidelog.settings",
    "tidelog.why.answer",
    "tidelog.handler.context",
    "tidelog.handler.signature",
    "tidelog.handler.verdicts",
    "tidelog_events.errors",
    "tidelog_events.record",
    "tidelog_events.replies",
    "tidelog_events.schedule_view",
    "tidelog_events.states",
    "tidelog_events.transitions",
)


if not TYPE_CHECKING:  # a type checker would take every name for one that this function finds

    def __getattr__(name: str) -> object:
        if name in __all__:
            for home in _HOMES:
                module = import_module(home)
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
