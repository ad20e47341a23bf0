"""How fast Tidelog is on this machine: `python -m bench` (or `make bench`) prints a table, and writes JSON.

Each role runs in its own process, as in production. What is counted are the transitions on the log, as any
other program can read them; nothing is reported by the parts that are being measured.
"""
