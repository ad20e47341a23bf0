"""What `tidelog doctor` says of an installation that runs; the health checks of containers ask it too."""

from __future__ import annotations

import pytest
from tests.integration.outsider import Commander, Inbox
from tests.integration.site import Site


@pytest.fixture
def serving(commander: Commander, inbox: Inbox) -> None:
    """The engines have answered: before that there is something to be said about them."""
    asked = {"type": "cancel", "job_id": "default/nobody", "command_id": "1", "reply_to": inbox.client_id}
    commander.send(asked, key="default")
    inbox.reply("1")


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize("checks", [["--only", "log,lag"], ["--only", "log,postgres,projection"], []])
def test_a_running_installation_is_well(site: Site, checks: list[str]) -> None:
    found = site.installation.run("doctor", *checks)
    assert found.exit_code == 0, found.output
