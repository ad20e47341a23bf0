"""A listener of a test broker that wants TLS and a password, with a certificate that is made for it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_OPENSSL_SECONDS = 30
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
    if shutil.which("openssl") is None:
        return None
    certificate, key, keystore = (folder / name for name in ("certificate.pem", "key.pem", "keystore.pem"))
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    whose = ["-subj", "/CN=tidelog-tests", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        ["openssl", "req", "-x509", *curve, "-nodes", "-days", "2", *whose, *files],
        check=True,
        capture_output=True,
        timeout=_OPENSSL_SECONDS,
    )
    keystore.write_text(key.read_text() + certificate.read_text())
    return SecuredListener(address, certificate, "ann", "open sesame")
