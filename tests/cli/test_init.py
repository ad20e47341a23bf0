"""`tidelog init` makes what is missing, once, and refuses what does not fit."""

from __future__ import annotations

from tests.cli.running import Installation


def test_makes_topics_and_schema_and_then_leaves_them(installation: Installation) -> None:
    first = installation.json("init")
    assert isinstance(first, dict)
    assert "tidelog.commands" in first["topics_created"]
    assert first["log"] == f"sqlite:{installation.folder}/log.db"
    again = installation.json("init")
    assert isinstance(again, dict)
    assert again["topics_created"] == []
    assert installation.json("queues") == {"queues": []}


def test_refuses_another_partition_count(installation: Installation) -> None:
    assert installation.run("init").exit_code == 0
    other = Installation(installation.folder, {**installation.variables, "TIDELOG_PARTITIONS": "5"})
    result = other.run("init")
    assert result.exit_code == 1
    assert "partitions" in result.stderr
    assert "Traceback" not in result.stderr


def test_relative_addresses_are_meant_from_the_working_directory(installation: Installation) -> None:
    variables = {"TIDELOG_LOG": "sqlite:here/log.db", "TIDELOG_POSTGRES": "embedded:here/postgres"}
    with Installation(installation.folder, variables).start("init") as process:
        assert process.end() == 0
    assert (installation.folder / "here" / "log.db").exists()
    assert (installation.folder / "here" / "postgres").exists()
