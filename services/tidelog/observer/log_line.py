"""A ready-made observer: one line in the program's log for each transition."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from tidelog.observer.context import ObserverContext
from tidelog_events.instants import format_instant
from tidelog_events.wire import to_wire

_MAX_TEXT_CHARS: Final = 500
_LEFT_OUT: Final = frozenset({"payload", "output", "failure_detail", "parents", "retry", "trace_context"})
"""Long, or of no use in a line; who needs them reads the event."""


def log_line(
    logger: logging.Logger | None = None, *, level: int = logging.INFO
) -> Callable[[ObserverContext], None]:
    """A handler that logs what happened, as text and as fields.

    The message is `type job_id state attempt=…`; the record's `tidelog` attribute is a dict of the event's
    fields for handlers that write JSON, without payload, output and failure detail, and with long texts cut.

    Example:
        `app.observer("log", types=[...])(log_line())`

    Args:
        logger: where to; `tidelog.events` when absent.
        level: of the lines; dead letters and quarantined jobs are at least warnings.
    """
    target = logger or logging.getLogger("tidelog.events")

    def write(context: ObserverContext) -> None:
        event = context.transition
        fields = {name: _short(value) for name, value in to_wire(event).items() if name not in _LEFT_OUT}
        fields["idempotency_key"] = context.idempotency_key
        is_bad = fields.get("state") in {"DeadLettered", "Quarantined"}
        # The texts of jobs come from anywhere: %r keeps a line one line.
        told = [f"{name}={fields[name]!r}" for name in ("attempt", "worker_id", "actor") if name in fields]
        told += [f"{name}={value!r}" for name, value in (("error", context.error),) if value is not None]
        target.log(
            max(level, logging.WARNING) if is_bad else level,
            "%s %s %s %s",
            event.TYPE,
            fields.get("job_id") or fields.get("schedule_id") or fields.get("queue"),
            fields.get("state", "-"),
            " ".join((f"at={format_instant(event.at)}", f"key={context.idempotency_key}", *told)),
            extra={"tidelog": fields},
        )

    return write


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > _MAX_TEXT_CHARS:
        return f"{value[:_MAX_TEXT_CHARS]}…"
    return value
