"""For the tests of applications: an application on virtual time, in memory (contract section 8)."""

from tidelog.testing.errors import AttemptFailed, HarnessError
from tidelog.testing.failures import Raised
from tidelog.testing.harness import Harness
from tidelog.testing.observers import ObserverFailure
from tidelog.worker.settings import WorkerSettings

__all__ = ["AttemptFailed", "Harness", "HarnessError", "ObserverFailure", "Raised", "WorkerSettings"]
