"""The log on Kafka. `KafkaLog` is in `tidelog.log.kafka.log`; what configures it needs no client library."""

from tidelog.log.kafka.options import KafkaOptions, KafkaReplication, KafkaSecurity

__all__ = ["KafkaOptions", "KafkaReplication", "KafkaSecurity"]
