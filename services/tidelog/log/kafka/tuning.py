"""The two settings without which a Kafka transaction takes 25 to 100 ms, and not 5."""

from __future__ import annotations

import aiokafka.producer.sender

# A broker answers CONCURRENT_TRANSACTIONS to the first request of a transaction for as long as it is still
# writing the markers of the one before, about 2 ms. aiokafka then sleeps 20 ms; it has no option for that.
aiokafka.producer.sender.BACKOFF_OVERRIDE = 0.001

WRITER_RETRY_BACKOFF_MS = 2
"""The first produce of a transaction is answered NOT_ENOUGH_REPLICAS in the same moment, and a commit waits
in the same way. aiokafka's default of 100 ms is meant for brokers that are away; those we meet with bounds of
our own."""
