"""The loop that feeds Postgres from the log."""
