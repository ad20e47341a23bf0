"""Handlers, whoever runs them: how a job is declared, what its handler may ask, and its failure as text."""
