"""Settings of a Kafka cluster: what may be said, what fits together, and what is said for nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tidelog.log.kafka.options import KafkaOptions, KafkaReplication, KafkaSecurity
from tidelog.settings import Settings, SettingsError

KAFKA = "kafka://one:9092"
SESAME = "open sesame"


@pytest.fixture(autouse=True)
def folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, and the log is on Kafka."""
    monkeypatch.setenv("TIDELOG_LOG", KAFKA)
    return folder


def say(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Set `TIDELOG_KAFKA_<NAME>` variables."""
    for name, value in variables.items():
        monkeypatch.setenv(f"TIDELOG_KAFKA_{name}", value)


def test_nothing_said_is_neither_encrypted_nor_authenticated() -> None:
    assert Settings().kafka == KafkaOptions()


def test_another_log_has_none() -> None:
    assert Settings(log="sqlite:log.db").kafka is None


def test_all_of_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    say(
        monkeypatch,
        SECURITY_PROTOCOL="SASL_PLAINTEXT",
        SASL_MECHANISM="SCRAM-SHA-512",
        SASL_USERNAME="ann",
        SASL_PASSWORD=SESAME,
        REPLICATION_FACTOR="5",
        MIN_INSYNC_REPLICAS="3",
    )
    assert Settings().kafka == KafkaOptions(
        KafkaSecurity("SASL_PLAINTEXT", mechanism="SCRAM-SHA-512", username="ann", password=SESAME),
        KafkaReplication(5, 3),
    )


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SECURITY_PROTOCOL": "TLS"}, r"TIDELOG_KAFKA_SECURITY_PROTOCOL='TLS': must be 'PLAINTEXT', 'SSL'"),
        ({"SASL_MECHANISM": "GSSAPI"}, r"TIDELOG_KAFKA_SASL_MECHANISM='GSSAPI': must be 'PLAIN'"),
        ({"CA_FILE": "nowhere.pem"}, r"TIDELOG_KAFKA_CA_FILE='nowhere.pem': there is no such file"),
        ({"REPLICATION_FACTOR": "0"}, r"TIDELOG_KAFKA_REPLICATION_FACTOR='0': must be greater than"),
        ({"MIN_INSYNC_REPLICAS": "most"}, r"TIDELOG_KAFKA_MIN_INSYNC_REPLICAS='most'"),
        (
            {"REPLICATION_FACTOR": "2", "MIN_INSYNC_REPLICAS": "3"},
            r"TIDELOG_KAFKA_MIN_INSYNC_REPLICAS='3': must be at most the replication factor, 2",
        ),
        (
            {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_USERNAME": "ann"},
            r"TIDELOG_KAFKA_SASL_PASSWORD \(kafka_sasl_password in tidelog.toml\) must be given",
        ),
        ({"SASL_PASSWORD": ""}, r"TIDELOG_KAFKA_SASL_PASSWORD: must not be empty"),
    ],
)
def test_names_the_variable_that_is_wrong(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(monkeypatch, **variables)
    with pytest.raises(SettingsError, match=message):
        Settings()


def test_names_the_variable_of_a_file_that_is_no_certificate(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "ca.pem").write_text("no certificate")
    say(monkeypatch, SECURITY_PROTOCOL="SSL", CA_FILE="ca.pem")
    with pytest.raises(SettingsError, match=r"TIDELOG_KAFKA_CA_FILE='ca.pem': .* must be readable PEM"):
        Settings()


def test_a_key_needs_its_certificate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "key.pem").touch()
    say(monkeypatch, SECURITY_PROTOCOL="SSL", KEY_FILE="key.pem")
    with pytest.raises(SettingsError, match=r"TIDELOG_KAFKA_CERTIFICATE_FILE .* must be given"):
        Settings()


def test_the_password_is_nowhere_to_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, SECURITY_PROTOCOL="SASL_SSL", SASL_USERNAME="ann", SASL_PASSWORD=SESAME)
    monkeypatch.setenv("TIDELOG_POSTGRES", "postgresql://me:secret@db/jobs")
    settings = Settings()
    for shown in (repr(settings), str(settings), repr(settings.kafka)):
        assert SESAME not in shown
        assert "secret" not in shown


@pytest.mark.parametrize(
    ("log", "variables", "unused", "why"),
    [
        (
            "sqlite:log.db",
            {"SASL_USERNAME": "ann", "REPLICATION_FACTOR": "3"},
            ["REPLICATION_FACTOR", "SASL_USERNAME"],
            "the log is sqlite:log.db",
        ),
        (KAFKA, {"SASL_USERNAME": "ann"}, ["SASL_USERNAME"], "the protocol is PLAINTEXT"),
    ],
)
def test_warns_of_what_nothing_uses(
    log: str,
    variables: dict[str, str],
    unused: list[str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("TIDELOG_LOG", log)
    say(monkeypatch, **variables)
    with caplog.at_level(logging.WARNING, logger="tidelog"):
        Settings()
    assert [record.message for record in caplog.records] == [
        f"TIDELOG_KAFKA_{name} (kafka_{name.lower()} in tidelog.toml) is said, and nothing uses it: {why}."
        for name in unused
    ]


def test_warns_of_nothing_when_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TIDELOG_LOG", "sqlite:log.db")
    with caplog.at_level(logging.WARNING, logger="tidelog"):
        Settings()
    assert caplog.records == []
