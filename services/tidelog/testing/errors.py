"""What the testing kit refuses, and what it says of attempts that failed without an exception."""

from tidelog_events.errors import TidelogError


class HarnessError(TidelogError):
    """The harness cannot do what the test asks for; the message says what to change."""


class AttemptFailed(TidelogError):
    """An attempt failed without an exception of its handler; the text is what the log says.

    It took longer than its `timeout`, its payload does not decode, no handler has its wire name, or what it
    returned is too large.
    """
