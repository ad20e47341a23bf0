"""Observers: consumer groups on the log of transitions, with tries, dead letters and redrive.

An observer sees what happened and can veto nothing. It reaches the log through the port alone, and knows
neither engine nor worker.
"""
