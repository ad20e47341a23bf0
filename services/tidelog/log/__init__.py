"""The append-only log: what it must do (`port`), the adapters that do it, `address.open_log` to open one."""
