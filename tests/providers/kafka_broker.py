"""A real Kafka broker that tests may also stop dead, kill and start again: on Java, or in a container.

    python -m tests.providers.kafka_broker

runs one until it is interrupted, and says its address.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.providers.kafka_jars import VERSION, NoBroker, jars, java
from tests.providers.kafka_secured import make_listener

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

READY_SECONDS = 60.0
_STOP_SECONDS = 10.0
_FORMAT_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_IMAGE = f"apache/kafka:{VERSION}"
_HEAP = ["-Xms256m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_DIE_TOO = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
"""Tests that are killed leave no broker behind, where util-linux is there to see to it. The kernel looks at
the thread that started the broker, so that has to live as long as it does."""

_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    # Kafka's default, with which a mere question about a topic may make it, otherwise than it should be.
    "auto.create.topics.enable": "true",
    # One broker: no copies of anything, and few files for its own topics.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # After a kill a broker must not wait long for its own old session to end.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    # How soon it notices a transaction that has been open for too long.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    # A group of tests should not wait for members that never come.
    "group.initial.rebalance.delay.ms": "0",
}


class Broker(ABC):
    """A broker of one's own. `address` (host:port) stays the same over restarts."""

    address: str

    @abstractmethod
    def pause(self) -> None:
        """Stop it dead, as if the network were gone: connections stay open, and nothing answers."""

    @abstractmethod
    def resume(self) -> None:
        """Let a paused one go on."""

    @abstractmethod
    def kill(self) -> None:
        """kill -9."""

    @abstractmethod
    def start(self) -> None:
        """Start it (again), and return when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """End it for good."""


class JavaBroker(Broker):
    """A process of this machine.

    Args:
        folder: for its files; they are left to the owner of the folder. `kafka.log` is the broker's own log.

    Attributes:
        secured: another listener, with TLS and a password; None where there is no openssl.
    """

    def __init__(self, folder: Path) -> None:
        self._java, self._jars = java(), jars()
        port, controller_port, secured_port = _free_ports(3)
        self.address = f"127.0.0.1:{port}"
        self._folder = folder
        self._log_file = folder / "kafka.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._parent = ThreadPoolExecutor(1, thread_name_prefix="kafka")
        self._properties = folder / "server.properties"
        properties = _PROPERTIES | {
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "log.dirs": str(folder / "data"),
        }
        self.secured = make_listener(f"127.0.0.1:{secured_port}", folder)
        if self.secured is not None:
            properties |= self.secured.properties()
            for name in ("listeners", "advertised.listeners"):
                properties[name] += f",SECURED://{self.secured.address}"
            properties["listener.security.protocol.map"] += ",SECURED:SASL_SSL"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._format()

    def pause(self) -> None:
        process = self._signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)  # its threads stop one by one

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._wait(_STOP_SECONDS)

    def start(self) -> None:
        self._process = self._parent.submit(self._spawn).result()
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(self.address):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise NoBroker(f"The Kafka broker did not start. Its log is {self._log_file}.")
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.resume()
            self._process.terminate()
            try:
                self._wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._parent.shutdown()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._log_file.open("ab") as log:
            return subprocess.Popen(
                [*self._command("kafka.Kafka"), str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,  # an interrupt at the terminal is for the tests, which then stop it
            )

    def _format(self) -> None:
        """Without the format of its folder a broker refuses to start."""
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        formatting = subprocess.run(
            [
                *self._command("kafka.tools.StorageTool"),
                "format",
                f"--cluster-id={cluster}",  # in one word, since one in 64 begins with a dash
                f"--config={self._properties}",
            ],
            capture_output=True,
            text=True,
            timeout=_FORMAT_SECONDS,
            check=False,
        )
        if formatting.returncode != 0:
            raise NoBroker(f"The folder of the Kafka broker could not be formatted: {formatting.stderr}")

    def _command(self, main: str) -> list[str]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [*_DIE_TOO, self._java, *_HEAP, level, "-cp", f"{self._jars}/*", main]

    def _signal(self, number: signal.Signals) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("this broker does not run")
        self._process.send_signal(number)
        return self._process

    def _wait(self, seconds: float) -> None:
        if self._process is not None:
            self._process.wait(seconds)


class DockerBroker(Broker):
    """A container of Kafka's own image, at a fixed port of this host: it keeps its address over restarts."""

    def __init__(self) -> None:
        # Not at the top: without Docker the tests do not need the package.
        from testcontainers.core.container import DockerContainer

        (port,) = _free_ports(1)
        self.address = f"127.0.0.1:{port}"
        container: DockerContainer = DockerContainer(_IMAGE).with_bind_ports(9092, port)
        properties = _PROPERTIES | {
            "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.quorum.voters": "1@localhost:9093",
        }
        for name, value in properties.items():
            container.with_env(f"KAFKA_{name.upper().replace('.', '_')}", value)
        self._container = container
        self._is_created = False

    def pause(self) -> None:
        self._container.get_wrapped_container().pause()

    def resume(self) -> None:
        self._container.get_wrapped_container().unpause()

    def kill(self) -> None:
        self._container.get_wrapped_container().kill()

    def start(self) -> None:
        if self._is_created:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._is_created = True
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(self.address):
            if time.monotonic() > deadline:
                self.stop()
                raise NoBroker(f"The container {_IMAGE} did not answer at {self.address}.")
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        if self._is_created:
            self._container.stop()


def has_docker() -> bool:
    """Whether a Docker daemon answers."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, timeout=10, check=False).returncode == 0


def own_broker(folder: Path) -> Broker:
    """A broker that is started here, and may be killed: a container, or else a process. Raises `NoBroker`."""
    return DockerBroker() if has_docker() else JavaBroker(folder)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens at now, each another one."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


_API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
"""The smallest request there is: ApiVersions v0, correlation id 1, no client id."""


def _answers(address: str) -> bool:
    """Whether a broker answers a request; it listens long before it does."""
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=1) as connection:
            connection.sendall(_API_VERSIONS)
            return connection.recv(4) != b""
    except OSError:
        return False


def main() -> None:
    """Run a broker until an interrupt."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="tidelog-kafka-") as folder:
        broker = own_broker(Path(folder))
        try:
            broker.start()
            sys.stdout.write(f"Kafka {VERSION} at {broker.address}: TIDELOG_LOG=kafka://{broker.address}\n")
            sys.stdout.flush()
            signal.pause()
        except KeyboardInterrupt:
            return
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
