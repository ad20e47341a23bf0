"""`tidelog why`: why a job is not running."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tidelog.cli.console import print_json, print_line
from tidelog.cli.exits import ExitCode, Refused
from tidelog.cli.options import JobIdArgument, JsonOption
from tidelog.cli.session import open_log, open_projection, read_settings

if TYPE_CHECKING:
    from tidelog.why import Why


async def why(job_id: JobIdArgument, as_json: JsonOption = False) -> None:
    """Say why a job is not running, or that it is: all reasons that hold, the most decisive first."""
    from tidelog.client.checking import check_job_id
    from tidelog.why import ask_why

    settings = read_settings()
    known = check_job_id(job_id)
    async with open_log(settings) as log, open_projection(settings) as projection:
        answer = await ask_why(log, settings.topics, projection, known)
    if as_json:
        print_json(answer.to_json())
        if not _is_found(answer):
            raise typer.Exit(ExitCode.REFUSED)
        return
    if not _is_found(answer):
        raise Refused("NotFound", " ".join(reason.sentence for reason in answer.reasons))
    if answer.state is not None:
        print_line(f"{answer.job_id} is {answer.state}.")
    for reason in answer.reasons:
        print_line(f"- {reason.sentence}")


def _is_found(answer: Why) -> bool:
    """Whether there is such a job, or the archive tells of one."""
    from tidelog.why import ReasonCode

    return answer.state is not None or answer.has(ReasonCode.PURGED)
