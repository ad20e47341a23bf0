"""`tidelog rebuild` makes the projection anew from the log."""

from __future__ import annotations

from tests.cli.running import Installation


def test_everything_is_there_again(running: Installation) -> None:
    running.run("enqueue", "w", "--queue", "rebuilt", "--key", "a", "--delay", "3600", "--tag", "kept")
    before = running.run("job", "rebuilt/a", "--json").stdout
    result = running.run("rebuild")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("rebuilt from 3 partitions: ")
    assert running.run("job", "rebuilt/a", "--json").stdout == before
    rebuilt = running.json("rebuild")
    assert isinstance(rebuilt, dict)
    assert rebuilt["partitions"] == 3
    assert rebuilt["jobs"] >= 1
