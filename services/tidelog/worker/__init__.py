"""Running handlers: what to claim, renew and report, and the loop that does it."""
