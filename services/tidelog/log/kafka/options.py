"""What a user may say about a Kafka cluster: how to reach it, and how safely its topics are kept."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Literal

from tidelog.log.port import LogError

_REPLICATION = 3
"""Copies of each partition where there are brokers enough: one may be away, and another one may fail then."""

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class WrongKafkaOptions(LogError):
    """What was said about the cluster cannot be used. The message says what, and what would be right."""


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """TLS and SASL of every connection; the default is neither.

    Attributes:
        protocol: as Kafka's `security.protocol`.
        ca_file: PEM of the authorities to trust, for the SSL protocols; the system's own without it.
        certificate_file, key_file: PEM of this client's certificate, where brokers ask for one.
        mechanism, username, password: for the SASL protocols.
    """

    protocol: Protocol = "PLAINTEXT"
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    mechanism: Mechanism = "PLAIN"
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.uses_sasl and not (self.username and self.password):
            raise WrongKafkaOptions(
                f"The security protocol {self.protocol} needs a user name and a password. Give both, or use"
                " SSL or PLAINTEXT."
            )
        if self.key_file is not None and self.certificate_file is None:
            raise WrongKafkaOptions(f"The key {self.key_file!r} needs its certificate. Name that file, too.")

    @property
    def uses_sasl(self) -> bool:
        """Whether the client says who it is."""
        return self.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS settings; None when the connection is not encrypted.

        Raises:
            WrongKafkaOptions: a file cannot be read, or is no PEM.
        """
        if self.protocol not in {"SSL", "SASL_SSL"}:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file)
        except OSError as error:  # ssl.SSLError is one, too
            named = [name for name in (self.ca_file, self.certificate_file, self.key_file) if name]
            raise WrongKafkaOptions(
                f"The TLS files {', '.join(named)} cannot be used: {error}. They must be readable PEM files."
            ) from error
        return context


@dataclass(frozen=True, slots=True)
class KafkaReplication:
    """How many brokers keep each record of a topic that is created, and how many must confirm it.

    Attributes:
        factor: copies of each partition; None: three, or as many as there are brokers.
        min_insync: copies that must have a record before it counts; None: one less than there are copies,
            so that one broker may be away, and at least one.
    """

    factor: int | None = None
    min_insync: int | None = None

    def for_brokers(self, brokers: int) -> tuple[int, int]:
        """The replication factor and `min.insync.replicas` in a cluster of so many brokers.

        Raises:
            WrongKafkaOptions: there are not so many brokers, or no copy may ever be missing of too many.
        """
        factor = self.factor if self.factor is not None else min(_REPLICATION, brokers)
        min_insync = self.min_insync if self.min_insync is not None else max(1, factor - 1)
        if not 1 <= factor <= brokers:
            raise WrongKafkaOptions(
                f"A replication factor of {factor} is asked for, and the cluster has {brokers} brokers."
                f" Ask for 1 to {brokers}."
            )
        if not 1 <= min_insync <= factor:
            raise WrongKafkaOptions(
                f"{min_insync} in-sync replicas are asked for, of {factor} in all. Ask for 1 to {factor}."
            )
        return factor, min_insync


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """All that a user may say about a cluster, but its address."""

    security: KafkaSecurity = field(default_factory=KafkaSecurity)
    replication: KafkaReplication = field(default_factory=KafkaReplication)
