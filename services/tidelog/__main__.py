"""`python -m tidelog` is `tidelog`."""

from __future__ import annotations

from tidelog.cli import main

main()
