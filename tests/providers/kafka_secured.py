"""A listener of a test broker that wants TLS and a password, with a certificate that is made for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.providers.certificates import make_certificate

_JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True, slots=True)
class SecuredListener:
    """Where it is, and what a client has to know and to trust."""

    address: str
    ca_file: Path
    username: str
    password: str

    def properties(self) -> dict[str, str]:
        """The broker's settings for it. It is called SECURED."""
        prefix = "listener.name.secured"
        user = f'user_{self.username}="{self.password}"'
        return {
            f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
            f"{prefix}.plain.sasl.jaas.config": f"{_JAAS} required {user};",
            f"{prefix}.ssl.keystore.type": "PEM",
            f"{prefix}.ssl.keystore.location": str(self.ca_file.with_name("keystore.pem")),
        }


def make_listener(address: str, folder: Path) -> SecuredListener | None:
    """A listener at an address of this host, its files in a folder; None where there is no openssl."""
    certificate = make_certificate(folder)
    if certificate is None:
        return None
    keystore = folder / "keystore.pem"
    keystore.write_text(certificate.key_file.read_text() + certificate.file.read_text())
    return SecuredListener(address, certificate.file, "ann", "open sesame")
