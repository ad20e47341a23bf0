"""The fixtures for pytest, in a run of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

_OPTIONS = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
_CONFTEST = """
import pytest
from tidelog import App

pytest_plugins = ["tidelog.testing.pytest_plugin"]
app = App()

@app.job("add")
async def add(a: int, b: int) -> int:
    return a + b
"""

_TEST = """
from conftest import add, app

async def test_one(tidelog_harness):
    async with app.client() as client:
        job_id = await client.enqueue(add.job(1, 2))
    assert await tidelog_harness.run_due() == 1
    tidelog_harness.assert_output(job_id, 3)
    tidelog_harness.assert_state(job_id, "Cancelled")

async def test_another(tidelog_harness):
    tidelog_harness.assert_not_enqueued()
"""


def test_each_test_gets_a_harness_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(f"{_CONFTEST}\n@pytest.fixture\ndef tidelog_app():\n    return app\n")
    pytester.makepyfile(_TEST)
    result = pytester.runpytest(*_OPTIONS)
    result.assert_outcomes(passed=1, failed=1)
    # The test's own line is shown, not the inside of the assertion.
    result.stdout.fnmatch_lines(
        ["*tidelog_harness.assert_state(job_id, *", "*to be Cancelled; it is Succeeded.*"]
    )
    result.stdout.no_fnmatch_line("*__tracebackhide__*")


def test_without_an_application_the_fixture_says_what_is_missing(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(_CONFTEST)
    pytester.makepyfile(_TEST)
    result = pytester.runpytest(*_OPTIONS)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*define a fixture tidelog_app that returns your App*"])
