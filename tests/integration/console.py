"""The console producer and consumer that come with Kafka, as processes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, Queue
from threading import Thread
from typing import NamedTuple

from tests.integration.outsider import SECONDS
from tests.providers.kafka_jars import jars, java

PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_HEAP = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


class Line(NamedTuple):
    """A record as the console consumer prints it."""

    partition: int
    key: str
    value: str


def produce(brokers: str, topic: str, records: Mapping[str, str]) -> None:
    """Type records, value by key, into the console producer; returns when the broker has them."""
    options = ["--bootstrap-server", brokers, "--topic", topic, "--property", "parse.key=true"]
    typed = "".join(f"{key}\t{value}\n" for key, value in records.items())
    done = subprocess.run(
        java_command(PRODUCER, *options),
        input=typed,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    # It ends well also when a record could not be sent: then it says so.
    assert (done.returncode, "ERROR" in done.stderr) == (0, False), done.stdout + done.stderr


class Printed:
    """What a console consumer prints, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: Queue[str | None] = Queue()
        Thread(target=self._read, daemon=True).start()

    def __iter__(self) -> Iterator[Line]:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                raise AssertionError("the console consumer prints no more") from None
            assert line is not None, "the console consumer has ended"
            partition, key, value = line.rstrip("\n").split("\t", 2)
            yield Line(int(partition.removeprefix("Partition:")), key, value)

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._lines.put(line)
        finally:
            self._lines.put(None)


@contextmanager
def consuming(brokers: str, topic: str, group: str) -> Iterator[Printed]:
    """A console consumer in a group, read_committed, from the topic's first record on."""
    options = ["--bootstrap-server", brokers, "--topic", topic, "--group", group, "--from-beginning"]
    options += ["--isolation-level", "read_committed"]
    options += ["--property", "print.partition=true", "--property", "print.key=true"]
    with subprocess.Popen(java_command(_CONSUMER, *options), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Printed(process)
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            finally:
                process.kill()


def java_command(main: str, *options: str) -> list[str]:
    """One of Kafka's own tools, as its shell script would start it."""
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [java(), *_HEAP, level, "-cp", f"{jars()}/*", main, *options]
