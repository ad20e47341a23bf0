"""Settings: where they come from, and how a wrong one is named."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tidelog.core.state import Retention
from tidelog.settings import Settings, SettingsError
from tidelog_events.instants import SECOND, Micros
from tidelog_projections.history import History

HOUR = 3_600


def test_nothing_said_is_everything_embedded() -> None:
    settings = Settings()

    assert settings.log == "sqlite:.tidelog/log.db"
    assert settings.postgres == "embedded:.tidelog/postgres"
    assert (settings.prefix, settings.partitions) == ("tidelog", 12)
    assert settings.retention == Retention()
    assert settings.history is History.DETAIL
    assert settings.archive is False


def test_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TIDELOG_LOG": "kafka://one:9092,two:9092",
        "TIDELOG_POSTGRES": "postgresql://me:secret@db/jobs",
        "TIDELOG_PREFIX": "prod.tidelog",
        "TIDELOG_PARTITIONS": "24",
        "TIDELOG_RETENTION_SUCCEEDED": "90",
        "TIDELOG_RETENTION_CANCELLED": "1.5h",
        "TIDELOG_RETENTION_DEAD_LETTERED": "30d",
        "TIDELOG_RETENTION_QUARANTINED": "45 m",
        "TIDELOG_HISTORY": "off",
        "TIDELOG_ARCHIVE": "on",
    }.items():
        monkeypatch.setenv(name, value)
    settings = Settings()

    assert settings.log == "kafka://one:9092,two:9092"
    assert settings.postgres == "postgresql://me:secret@db/jobs"
    assert settings.topics.commands == "prod.tidelog.commands"
    assert settings.partitions == 24
    assert settings.retention == Retention(
        succeeded=Micros(90 * SECOND),
        cancelled=Micros(5_400 * SECOND),
        dead_lettered=Micros(30 * 24 * HOUR * SECOND),
        quarantined=Micros(45 * 60 * SECOND),
    )
    assert settings.history is History.OFF
    assert settings.archive is True


def test_the_environment_wins_over_the_file_and_arguments_over_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tidelog.toml").write_text(
        'prefix = "file"\npartitions = 3\nhistory = "transitions"\nretention_succeeded = 60\n'
    )
    monkeypatch.setenv("TIDELOG_PARTITIONS", "4")
    monkeypatch.setenv("TIDELOG_HISTORY", "off")
    settings = Settings(history=History.DETAIL)

    assert (settings.prefix, settings.partitions, settings.history) == ("file", 4, History.DETAIL)
    assert settings.retention_succeeded == 60


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TIDELOG_LOG", "", r"TIDELOG_LOG='': must start with sqlite: or kafka://"),
        ("TIDELOG_LOG", "sqlite:", r"TIDELOG_LOG='sqlite:': must .* name something"),
        ("TIDELOG_LOG", "redis://x", r"TIDELOG_LOG='redis://x'"),
        ("TIDELOG_POSTGRES", "mysql://x", r"TIDELOG_POSTGRES: must start with postgresql://"),
        ("TIDELOG_PREFIX", "a b", r"TIDELOG_PREFIX='a b': must be 1 to 100 characters"),
        ("TIDELOG_PARTITIONS", "0", r"TIDELOG_PARTITIONS='0': must be greater than or equal to 1"),
        ("TIDELOG_PARTITIONS", "many", r"TIDELOG_PARTITIONS='many'"),
        ("TIDELOG_RETENTION_SUCCEEDED", "2 weeks", r"'2 weeks': must be a number of seconds, or such as"),
        ("TIDELOG_RETENTION_CANCELLED", "0", r"TIDELOG_RETENTION_CANCELLED='0': must be more than 0"),
        ("TIDELOG_RETENTION_DEAD_LETTERED", "-1", r"TIDELOG_RETENTION_DEAD_LETTERED='-1'"),
        ("TIDELOG_HISTORY", "all", r"TIDELOG_HISTORY='all': must be 'off', 'transitions' or 'detail'"),
        ("TIDELOG_ARCHIVE", "14d", r"TIDELOG_ARCHIVE='14d': must be on or off"),
    ],
)
def test_names_the_variable_that_is_wrong(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=message):
        Settings()


def test_names_everything_that_is_wrong_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_PARTITIONS", "x")
    monkeypatch.setenv("TIDELOG_HISTORY", "y")
    with pytest.raises(SettingsError) as caught:
        Settings()
    assert "TIDELOG_PARTITIONS='x'" in str(caught.value)
    assert "TIDELOG_HISTORY='y'" in str(caught.value)


def test_names_the_key_of_the_file_that_is_wrong(folder: Path) -> None:
    (folder / "tidelog.toml").write_text("partitions = true\nretention_succeeded = false\n")
    with pytest.raises(SettingsError) as caught:
        Settings()
    for named in (
        "TIDELOG_PARTITIONS (partitions in tidelog.toml): must be a whole number",
        "TIDELOG_RETENTION_SUCCEEDED (retention_succeeded in tidelog.toml): must be",
    ):
        assert named in str(caught.value)


@pytest.mark.parametrize("content", [b"partitions = ", b"\xff"])
def test_refuses_a_file_that_is_no_toml(folder: Path, content: bytes) -> None:
    (folder / "tidelog.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"tidelog\.toml cannot be read as TOML"):
        Settings()


def test_a_password_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_POSTGRES", "mysql://me:secret@db")
    with pytest.raises(SettingsError) as caught:
        Settings()
    assert "secret" not in str(caught.value)


def test_warns_of_what_nothing_reads(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "tidelog.toml").write_text('prefix = "p"\nhistorry = "off"\n')
    monkeypatch.setenv("TIDELOG_POSTGRESS", "embedded:x")
    monkeypatch.setenv("TIDELOG_UNHEARD_OF_THING", "1")
    monkeypatch.setenv("TIDELOG_TEST_KAFKA", "1")
    with caplog.at_level(logging.WARNING, logger="tidelog"):
        Settings()

    ignored = "is no setting of Tidelog and is ignored."
    hints = [record.message.partition(ignored) for record in caplog.records]
    assert [(what, hint) for what, _, hint in hints] == [
        (
            "The environment variable TIDELOG_POSTGRESS ",
            " Did you mean TIDELOG_POSTGRES (postgres in tidelog.toml)?",
        ),
        ("The environment variable TIDELOG_UNHEARD_OF_THING ", ""),
        (
            "The key 'historry' of tidelog.toml ",
            " Did you mean TIDELOG_HISTORY (history in tidelog.toml)?",
        ),
    ]
