"""The webhook: HTTPS alone, signed, bounded, and a failure for all that is not 2xx."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from tests.conformance.cluster import MemoryCluster
from tests.engine.house import eventually
from tests.observer.receiver import Receiver, receiving
from tests.observer.stage import Stage
from tests.providers.certificates import make_certificate

from tidelog.observer.context import ObserverContext
from tidelog.observer.errors import BadObserver
from tidelog.observer.webhook import MAX_BODY_BYTES, BadSignature, WebhookRefused, sign, verify, webhook
from tidelog_events.jsontext import JsonBytes
from tidelog_events.record import JobRecord

SECRET = "a secret of 16 bytes or more"  # noqa: S105  of these tests


@pytest.fixture
async def stage() -> Stage:
    return await Stage.build(MemoryCluster())


def delivery(stage: Stage) -> ObserverContext:
    birth = stage.partitions[0].birth()

    async def find_job() -> JobRecord:
        return JobRecord.born(birth)

    return ObserverContext(birth, observer_id="crm", find_job=find_job)


async def test_each_event_is_posted_with_its_key_and_a_signature(stage: Stage) -> None:
    async with receiving(Receiver()) as receiver:
        handler = webhook(receiver.url, secret=SECRET, headers={"X-More": "1"}, allow_http_localhost=True)
        await stage.partitions[0].enqueued(2)
        async with stage.observing(handler, "crm"):
            await eventually(lambda: len(receiver.requests) == 2)
    first, second = receiver.requests
    assert (first.headers["Tidelog-Id"], second.headers["Tidelog-Id"]) == ("0-0", "0-1")
    assert first.headers["Tidelog-Event"] == "enqueued"
    assert first.headers["X-More"] == "1"
    body = orjson.loads(first.body)
    assert (body["id"], body["observer"], body["job"]) == ("0-0", "crm", None)
    assert body["transition"]["job_id"] == "q/0"
    assert verify(SECRET, first.headers, first.body) == "0-0"
    for secret, altered in (("another secret, as long", first.body), (SECRET, first.body + b" ")):
        with pytest.raises(BadSignature, match="not that of this body"):
            verify(secret, first.headers, altered)
    with pytest.raises(BadSignature, match="s from now"):
        verify(SECRET, first.headers, first.body, now=time.time() + 301)
    with pytest.raises(BadSignature, match="is missing"):
        verify(SECRET, {}, first.body)


async def test_over_tls_the_certificate_is_checked(stage: Stage, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    if certificate is None:
        pytest.skip("there is no openssl")
    async with receiving(Receiver(), certificate) as receiver:
        await webhook(receiver.url, secret=SECRET, ca_file=str(certificate.file))(delivery(stage))
        assert len(receiver.requests) == 1
        with pytest.raises(WebhookRefused, match="certificate"):
            await webhook(receiver.url, secret=SECRET)(delivery(stage))
        assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"500 Oops\r\nContent-Length: 4\r\n\r\nboom", "answered 500: boom"),
        (b"404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered 404"),
        (b"302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "answered 302"),
        (b"500 Oops\r\n\r\n" + b"x" * 1_000_000, "answered 500: xxx"),
        (b"nonsense\r\n\r\n", "cannot be reached"),
    ],
    ids=["500", "404", "redirect", "long", "no http"],
)
async def test_all_but_2xx_is_a_failure(stage: Stage, answer: bytes, words: str) -> None:
    async with receiving(Receiver([answer])) as receiver:
        with pytest.raises(WebhookRefused, match=words) as caught:
            await webhook(receiver.url, secret=SECRET, allow_http_localhost=True)(delivery(stage))
        assert len(receiver.requests) == 1
        assert "hush" not in str(caught.value)
        assert len(str(caught.value)) < 500


async def test_a_receiver_that_does_not_answer_is_given_up(stage: Stage) -> None:
    async with receiving(Receiver(hangs=True)) as receiver:
        handler = webhook(receiver.url, secret=SECRET, timeout=0.05, allow_http_localhost=True)
        with pytest.raises(WebhookRefused, match=r"within 0\.05 s"):
            await handler(delivery(stage))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("Authorization", "Bearer hush\n", "The value of the header Authorization"),
        ("Authorization", "Bearer hushé", "The value of the header Authorization"),
        ("Authorization", " hush", "The value of the header Authorization"),
        ("X-Number", 5, "The value of the header X-Number"),
        ("X Y", "hush", "no name of a header"),
        ("X\r\nY", "hush", "no name of a header"),
        ("content-length", "1", "Tidelog's own"),
        ("tidelog-signature", "v1=hush", "Tidelog's own"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_and_kept_secret(name: str, value: str, words: str) -> None:
    with pytest.raises(BadObserver, match=words) as caught:
        webhook("https://crm.example/", secret=SECRET, headers={name: value})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Tidelog-Timestamp", "9" * 400),
        ("Tidelog-Timestamp", "nan"),
        ("Tidelog-Timestamp", "\uff11\uff12"),
        ("Tidelog-Signature", "\udcff"),
        ("Tidelog-Id", "\ud800"),
        ("Tidelog-Id", "é"),
    ],
)
def test_whatever_a_stranger_sends_is_a_bad_signature(header: str, value: str) -> None:
    headers = {"Tidelog-Id": "0-0", "Tidelog-Timestamp": "1", "Tidelog-Signature": "v1=x", header: value}
    with pytest.raises(BadSignature):
        verify(SECRET, headers, b"{}")


def test_the_signature_is_the_one_that_receivers_in_other_languages_compute() -> None:
    expected = "164d02c3faa0ec7a6562be73a8bc4181e377740579ec4634bd73fdd27c61198b"
    assert sign(SECRET.encode(), "0-7", "1767225600", b"{}") == f"v1={expected}"


async def test_proxies_of_the_environment_see_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with receiving(Receiver()) as receiver:
        await webhook(receiver.url, secret=SECRET, allow_http_localhost=True)(delivery(stage))
        assert len(receiver.requests) == 1


async def test_an_answer_without_an_end_is_not_read_to_it(stage: Stage) -> None:
    async with receiving(Receiver([b"500 Oops\r\n\r\n"], is_endless=True)) as receiver:
        with pytest.raises(WebhookRefused, match="answered 500: xxx"):
            await webhook(receiver.url, secret=SECRET, timeout=5, allow_http_localhost=True)(delivery(stage))


def test_authorities_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadObserver, match=r"missing\.pem"):
        webhook("https://crm.example/", secret=SECRET, ca_file=str(tmp_path / "missing.pem"))


async def test_a_failed_post_is_tried_again_with_the_same_id(stage: Stage) -> None:
    answers = [b"503 Later\r\nContent-Length: 0\r\n\r\n", b"200 OK\r\nContent-Length: 0\r\n\r\n"]
    async with receiving(Receiver(answers)) as receiver:
        await stage.partitions[0].enqueued(1)
        handler = webhook(receiver.url, secret=SECRET, allow_http_localhost=True)
        async with stage.observing(handler, "crm") as observer:
            await eventually(lambda: observer.counters.delivered == 1)
    assert [request.headers["Tidelog-Id"] for request in receiver.requests] == ["0-0", "0-0"]


async def test_a_body_is_cut_to_its_bound_whatever_the_job_is_like(stage: Stage) -> None:
    async with receiving(Receiver()) as receiver:
        handler = webhook(receiver.url, secret=SECRET, allow_http_localhost=True)
        context = delivery(stage)
        tags = tuple(f"{number:04}{chr(1) * 400}" for number in range(128))
        context.transition = replace(stage.partitions[0].birth(), tags=tags)
        await handler(context)
    (request,) = receiver.requests
    assert len(request.body) <= MAX_BODY_BYTES
    cut = orjson.loads(request.body)
    assert (cut["truncated"], cut["transition"]["tags"], cut["transition"]["job_id"]) == (True, None, "q/0")


async def test_with_the_job_and_with_a_body_that_is_cut(stage: Stage) -> None:
    async with receiving(Receiver()) as receiver:
        handler = webhook(receiver.url, secret=SECRET, with_job=True, allow_http_localhost=True)
        context = delivery(stage)
        await handler(context)
        context.transition = replace(
            stage.partitions[0].birth(), payload=JsonBytes(b'"' + b"x" * MAX_BODY_BYTES + b'"')
        )
        await handler(context)
    whole, cut = (orjson.loads(request.body) for request in receiver.requests)
    assert whole["job"]["job_id"] == "q/0"
    assert "truncated" not in whole
    assert (cut["truncated"], cut["transition"]["payload"], cut["transition"]["job_id"]) == (
        True,
        None,
        "q/0",
    )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.com/", "is not https://"),
        ("http://127.0.0.1.example.com/", "is not https://"),
        ("ftp://example.com/", "must be an https:// address"),
        ("https://", "must be an https:// address"),
        ("https://ann:hush@example.com/", "has a user or password"),
        ("https://example.com:no/", "cannot be read"),
        ("https://exa\nmple.com/", "blanks or control characters"),
        ("https://exa mple.com/", "blanks or control characters"),
        ("https://xn--a.example/", "cannot be read"),
        ("https://example.com/\ud800", "cannot be read"),
    ],
)
def test_only_https_addresses_are_taken(url: str, words: str) -> None:
    with pytest.raises(BadObserver, match=words):
        webhook(url, secret=SECRET, allow_http_localhost=True)


def test_http_to_this_host_has_to_be_asked_for_and_secrets_are_long() -> None:
    with pytest.raises(BadObserver, match="allow_http_localhost"):
        webhook("http://localhost/", secret=SECRET)
    with pytest.raises(BadObserver, match="16 or more"):
        webhook("https://example.com/", secret="short")  # noqa: S106  that is what is wrong
