"""The assertions of a harness, and what they say when they do not hold."""

from __future__ import annotations

import re

import pytest

from tidelog import App, Retry
from tidelog.testing import Harness

app = App()


@app.job("mail", queue="mails", retry=Retry(max_attempts=1))
async def mail(to: str, options: dict[str, bool]) -> str:
    if "@" not in to and not options:
        raise ValueError(f"{to} is no address")
    return to


def saying(*lines: str) -> str:
    return "".join(f"(?s:.*){re.escape(line)}" for line in lines)


async def test_what_was_enqueued() -> None:
    async with Harness(app) as h:
        h.assert_not_enqueued()
        with pytest.raises(
            AssertionError, match=saying("at least one job of wire name 'mail'", "Nothing was")
        ):
            h.assert_enqueued("mail")
        ann = await h.enqueue(mail.job("ann@example.org", {"html": True, "copy": False}))
        bob = await h.enqueue(mail.job("bob@example.org", {"html": False}))
        assert h.assert_enqueued("mail", count=2) == [ann, bob]
        assert h.assert_enqueued("mail", payload={"options": {"html": True}}, queue="mails") == [ann]
        h.assert_not_enqueued("mail", payload={"to": "carl@example.org"})
        h.assert_not_enqueued("mail", queue="other")
        h.assert_not_enqueued("letter")
        with pytest.raises(
            AssertionError,
            match=saying("Expected 3 jobs of wire name 'mail'; 2 were", f"{ann}  mail", f"{bob}  mail"),
        ):
            h.assert_enqueued("mail", count=3)
        with pytest.raises(
            AssertionError, match=saying("Expected no job on queue 'mails'", f"{ann} and 1 more")
        ):
            h.assert_not_enqueued(queue="mails")


async def test_what_became_of_a_job() -> None:
    async with Harness(app) as h:
        good = await h.enqueue(mail.job("ann@example.org", {}))
        bad = await h.enqueue(mail.job("nowhere", {}))
        await h.run_due()
        assert h.assert_state(good, "Succeeded") == h.job(good)
        assert h.assert_output(good, "ann@example.org") == h.job(good)
        with pytest.raises(AssertionError, match=r"to return 'bob'; it returned 'ann@example\.org'"):
            h.assert_output(good, "bob")
        with pytest.raises(
            AssertionError,
            match=saying(
                f"Expected {bad} to be Succeeded; it is DeadLettered.",
                "2026-01-01T00:00:00Z  leased, attempt 1",
                "dead_lettered, attempt 1: ValueError: nowhere is no address",
            ),
        ):
            h.assert_output(bad, "nowhere")
        with pytest.raises(AssertionError, match="There is no job mails/none"):
            h.assert_state("mails/none", "Succeeded")
        with pytest.raises(ValueError, match="Done"):
            h.assert_state(good, "Done")


async def test_what_was_meant_is_listed_before_what_crowds_it_out() -> None:
    async with Harness(app) as h:
        for _ in range(30):
            await h.enqueue("tick")
        await h.enqueue(mail.job(to="ann@example.org", options={}))
        with pytest.raises(AssertionError, match=saying("1 was enqueued", "  mail  ", "tick", "and 11 more")):
            h.assert_enqueued("mail", count=2)
