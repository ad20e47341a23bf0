"""Producing commands and awaiting their answers."""
