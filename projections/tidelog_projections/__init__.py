"""Postgres as a projection of the log: its schema, how transitions become rows, how rows are read."""
