"""The append-only log: what it must do (`port`) and the adapters that do it."""
