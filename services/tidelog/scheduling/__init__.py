"""Schedules that an application declares: their registry, and how workers put them there."""
