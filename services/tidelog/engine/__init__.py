"""The single writer of a partition: read, decide, commit, answer."""
