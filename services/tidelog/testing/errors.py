"""What the testing kit refuses. A job that fails is no error of it: its state tells, or `raise_failures`."""

from tidelog_events.errors import TidelogError


class HarnessError(TidelogError):
    """The harness cannot do what the test asks for; the message says what to change."""
