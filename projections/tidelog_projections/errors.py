"""What can go wrong between the log and Postgres; every message names the address without its password."""

from __future__ import annotations

from typing import Final

from tidelog_events.errors import TidelogError

WAYS_OUT: Final = (
    "Check TIDELOG_LOG, TIDELOG_PREFIX and TIDELOG_POSTGRES first: if one of them names the wrong place, "
    "mend that and start again. Only if they are right, and the log was really replaced or has lost records, "
    "run `tidelog rebuild`, which makes Postgres anew from what this log holds"
)
"""What to do when Postgres and the log do not fit together. A rebuild from the wrong log drops good rows."""


class ProjectionError(TidelogError):
    """The base of what the projection refuses or cannot do."""


class ProjectionUnavailable(ProjectionError):
    """Postgres cannot be reached, or does not answer, for now. Nothing is half written: try again."""


class ProjectionRefused(ProjectionError):
    """Postgres answered and said no: a right is missing, the schema was changed, the server is too old."""


class SchemaTooNew(ProjectionError):
    """The schema was made by a later release than this one."""


class SequenceGap(ProjectionError):
    """The next event of a partition is not the one that must follow. Nothing is skipped: this is an alarm."""


class Unstorable(ProjectionError):
    """An event among those given has a value that no column can hold. None of them was taken in."""


class RebuildRunning(ProjectionError):
    """Another process is rebuilding this projection."""


class InvalidQuery(ProjectionError):
    """A read was asked for with a limit or a cursor that cannot be served."""


class EmbeddedPostgresError(ProjectionError):
    """The embedded Postgres could not be started or stopped."""
