"""Exit codes, and which error ends with which (contract section 9)."""

from __future__ import annotations

from enum import IntEnum

from tidelog_events.errors import TidelogError


class ExitCode(IntEnum):
    """What the shell gets to see."""

    DONE = 0
    REFUSED = 1
    WRONG_USE = 2
    UNREACHABLE = 3


class WrongUse(TidelogError):
    """The command line itself cannot be carried out as it stands."""


class Refused(TidelogError):
    """What was asked for is refused, or there is no such thing.

    Attributes:
        result: one word for programs, printed on standard output.
    """

    def __init__(self, result: str, message: str) -> None:
        super().__init__(message)
        self.result = result


class Unreachable(TidelogError):
    """A service is not there; the message names its address."""


class GaveUp(TidelogError):
    """A process that this one started has ended by itself, and has said why.

    Attributes:
        code: its exit code, which becomes this process's own.
    """

    def __init__(self, role: str, code: int) -> None:
        super().__init__(f"a {role} process gave up with exit code {code}; it has said why.")
        self.code = code


def exit_code(error: TidelogError) -> int:
    """The exit code that stands for an error: one of `ExitCode`, but for `GaveUp`."""
    if isinstance(error, GaveUp):
        return error.code
    # Only a failing command pays for these imports.
    from tidelog.client import errors as client
    from tidelog.log import port
    from tidelog.log.address import UnusableAddress
    from tidelog.log.kafka.options import WrongKafkaOptions
    from tidelog.observer.errors import UnknownObserver
    from tidelog.settings import SettingsError
    from tidelog.worker.dispatch import BadDispatch
    from tidelog.worker.settings import BadWorkerSettings
    from tidelog_projections import errors as projections

    refused = (
        client.CommandRefused,
        port.TopicMismatch,
        projections.ProjectionRefused,
        projections.SchemaTooNew,
        projections.RebuildRunning,
    )
    wrong_use = (
        WrongUse,
        SettingsError,
        UnknownObserver,
        UnusableAddress,
        WrongKafkaOptions,
        BadDispatch,
        BadWorkerSettings,
        projections.InvalidQuery,
    )
    unreachable = (
        Unreachable,
        client.ClientClosed,
        client.ProjectionBehind,
        client.ReplyTimeout,
        client.SendUnconfirmed,
        port.LogError,
        projections.EmbeddedPostgresError,
        projections.ProjectionUnavailable,
    )
    if isinstance(error, refused):
        return ExitCode.REFUSED
    if isinstance(error, wrong_use):
        return ExitCode.WRONG_USE
    return ExitCode.UNREACHABLE if isinstance(error, unreachable) else ExitCode.REFUSED


def printed_result(error: TidelogError) -> str | None:
    """The contract's word for a refusal; None for an error that is no result of a command."""
    from tidelog.client.errors import CommandRefused

    if isinstance(error, CommandRefused):
        return error.result.value
    return error.result if isinstance(error, Refused) else None
