"""The demonstration: every role at work on real files, and what came of it checked against the files."""
