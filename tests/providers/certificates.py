"""A certificate for 127.0.0.1 that is made for a test."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_OPENSSL_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Certificate:
    """Signed by itself: who trusts the file trusts the server."""

    file: Path
    key_file: Path


def make_certificate(folder: Path) -> Certificate | None:
    """A certificate with its files in a folder; None where there is no openssl."""
    if shutil.which("openssl") is None:
        return None
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    whose = ["-subj", "/CN=tidelog-tests", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(made.key_file), "-out", str(made.file)]
    subprocess.run(
        ["openssl", "req", "-x509", *curve, "-nodes", "-days", "2", *whose, *files],
        check=True,
        capture_output=True,
        timeout=_OPENSSL_SECONDS,
    )
    return made
