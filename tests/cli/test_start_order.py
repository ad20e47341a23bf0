"""Roles may be started in any order: they wait for what is not there yet, and go on by themselves."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from uuid import uuid4

import pytest
from tests.cli.running import Installation, Process
from tests.providers.kafka import GivenBroker
from tests.providers.kafka_broker import Broker

ROLES = (
    ("worker", "shop:app", "--queues", "greetings"),
    ("projector",),
    ("observe", "shop:app"),
    ("engine",),
)
NOBODY = "127.0.0.1:1"


@pytest.fixture(params=["sqlite", "kafka"])
def nothing_yet(installation: Installation, request: pytest.FixtureRequest) -> Installation:
    """An installation on each log, of which nothing exists yet."""
    if request.param == "sqlite":
        return installation
    broker: Broker | GivenBroker = request.getfixturevalue("kafka")
    return on_kafka(installation, broker.address)


def on_kafka(installation: Installation, address: str) -> Installation:
    """The same on a Kafka log, under a prefix of its own."""
    variables = {"TIDELOG_LOG": f"kafka://{address}", "TIDELOG_PREFIX": f"test-{uuid4().hex}"}
    return Installation(installation.folder, {**installation.variables, **variables})


def end_in_order(roles: list[Process]) -> None:
    for role in roles:
        role.signal(signal.SIGTERM)
    assert [role.end() for role in roles] == [0] * len(roles)
    assert "Traceback" not in "".join(line for role in roles for line in role.said)


def test_roles_come_first_and_the_installation_last(nothing_yet: Installation) -> None:
    with ExitStack() as running:
        roles = [running.enter_context(nothing_yet.start(*role)) for role in ROLES]
        for role in roles:
            role.expect("waiting for")
        assert nothing_yet.run("init").exit_code == 0
        enqueued = nothing_yet.run(
            "enqueue",
            "greet",
            "--queue",
            "greetings",
            "--key",
            "a",
            "--payload",
            '{"name": "Ann"}',
            "--timeout",
            "25",
        )
        assert enqueued.exit_code == 0, enqueued.output
        wait_until_succeeded(nothing_yet, "greetings/a")
        end_in_order(roles)


def wait_until_succeeded(installation: Installation, job_id: str) -> None:
    """Look until the job has succeeded; each look is a command, which takes its time."""
    looks = (installation.run("job", job_id, "--json").output for _ in range(100))
    assert any('"state":"Succeeded"' in found for found in looks)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role[0])
def test_a_signal_ends_the_waiting_for_an_installation(installation: Installation, role: list[str]) -> None:
    with installation.start(*role) as process:
        process.expect("waiting for the installation, and going on as soon as it is there: There is no log")
        process.signal(signal.SIGTERM)
        assert process.end() == 0
    assert not (installation.folder / "log.db").exists(), "waiting for it must not make it"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role[0])
def test_brokers_that_are_not_there_are_named_once(installation: Installation, role: list[str]) -> None:
    with on_kafka(installation, NOBODY).start(*role) as process:
        said = process.expect("waiting for the log")
        assert f"kafka://{NOBODY}" in said
        process.signal(signal.SIGTERM)
        assert process.end() == 0
    assert [line for line in process.said if "waiting" not in line and "INFO" not in line] == []


def test_brokers_may_come_last(installation: Installation, own_kafka: Broker) -> None:
    own_kafka.kill()
    with ExitStack() as back:
        back.callback(own_kafka.start)
        with on_kafka(installation, own_kafka.address).start("engine") as engine:
            engine.expect("waiting for the log")
            back.close()
            engine.expect("waiting for the topics")
            engine.signal(signal.SIGTERM)
            assert engine.end() == 0


def test_commands_for_people_do_not_wait(installation: Installation) -> None:
    nowhere = on_kafka(installation, NOBODY)
    for command in (["init"], ["enqueue", "greet"], ["up", "shop:app"]):
        with nowhere.start(*command) as process:
            assert process.end() == 3
            assert process.said[-1].startswith(f"tidelog: kafka://{NOBODY} ")
            # Only a role has a log: a command for people says it once, in its own words.
            assert len(process.said) == 1 or command[0] == "up"


def test_a_wrong_setting_is_not_waited_for(installation: Installation) -> None:
    variables = {**installation.variables, "TIDELOG_KAFKA_SECURITY_PROTOCOL": "TLS"}
    with Installation(installation.folder, variables).start("engine") as process:
        assert process.end() == 2
        assert "TIDELOG_KAFKA_SECURITY_PROTOCOL" in "".join(process.said)
