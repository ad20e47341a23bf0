"""Java, and the jars of a broker and its console tools, without Docker: found, or installed if possible."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSION = "4.1.1"
JAVA_AT_LEAST = 17
_POM = Path(__file__).with_name("kafka-pom.xml")
_POM_DIGEST = hashlib.sha256(_POM.read_bytes()).hexdigest()[:8]
CACHE = Path(__file__).parents[2] / ".cache" / "kafka" / f"{VERSION}-{_POM_DIGEST}"
"""Under the digest too, so that jars are fetched again when other ones are asked for."""
_MAVEN_SECONDS = 600
_APT_SECONDS = 600
_JAVA_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")

WAYS = (
    "These tests need a Kafka broker, and there are four ways to one: name a running one in"
    f" TIDELOG_TEST_KAFKA (host:port); or install Docker; or Java {JAVA_AT_LEAST} and Maven; or be root on"
    " Debian or Ubuntu, where both are installed by themselves."
)


class NoBroker(Exception):
    """No way leads to a broker here. The message names the ways."""


def jars() -> Path:
    """The folder of the jars; Maven fetches them once (43 MB). Raises `NoBroker`."""
    if not CACHE.is_dir():
        _ensure("mvn", ["maven"])
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent) as unfinished:
            libs = Path(unfinished) / "libs"
            options = [f"-DoutputDirectory={libs}", f"-Dkafka.version={VERSION}"]
            _run(
                ["mvn", "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies", *options], _MAVEN_SECONDS
            )
            _move_into_place(libs)
    return CACHE


def java() -> str:
    """The command of a Java that is new enough. Raises `NoBroker`."""
    if _java_version() < JAVA_AT_LEAST:
        _install(next(filter(_apt_knows, _JAVA_PACKAGES), _JAVA_PACKAGES[0]))
        if _java_version() < JAVA_AT_LEAST:
            raise NoBroker(f"Java {_java_version()} is too old for a broker. {WAYS}")
    return "java"


def _java_version() -> int:
    """Its major version; 0 when there is none."""
    if shutil.which("java") is None:
        return 0
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else 0


def _ensure(command: str, packages: list[str]) -> None:
    if shutil.which(command) is None:
        _install(*packages)


def _install(*packages: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoBroker(WAYS)
    quietly = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "update", "-qq"], _APT_SECONDS, quietly)
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], _APT_SECONDS, quietly)


def _apt_knows(package: str) -> bool:
    if shutil.which("apt-cache") is None:
        return False
    return bool(
        subprocess.run(["apt-cache", "policy", package], capture_output=True, check=False).stdout.strip()
    )


def _run(command: list[str], seconds: float, environment: dict[str, str] | None = None) -> None:
    try:
        subprocess.run(
            command,
            check=True,
            timeout=seconds,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    except subprocess.TimeoutExpired as error:
        raise NoBroker(f"{command[0]} did not end within {seconds:.0f} s. {WAYS}") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).decode(errors="replace").strip()[-2_000:]
        raise NoBroker(f"{' '.join(command[:3])} failed: {said}\n{WAYS}") from error


def _move_into_place(libs: Path) -> None:
    """All at once, so that a broken fetch is never taken for a whole one."""
    try:
        libs.rename(CACHE)
    except OSError:
        if not CACHE.is_dir():  # otherwise another process was faster
            raise
