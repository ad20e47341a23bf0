"""A ready-made observer: a POST of each transition to an HTTPS address, signed (extra `webhook`).

The receiver checks the signature with `verify`, or with the recipe of `docs/how-to/observers.md` in another
language, and drops what it has seen by the id.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

import httpx
import orjson

from tidelog.observer.context import ObserverContext
from tidelog.observer.errors import BadObserver
from tidelog_events.errors import TidelogError
from tidelog_events.wire import to_wire

ID_HEADER: Final = "Tidelog-Id"
TIMESTAMP_HEADER: Final = "Tidelog-Timestamp"
SIGNATURE_HEADER: Final = "Tidelog-Signature"
EVENT_HEADER: Final = "Tidelog-Event"
MAX_BODY_BYTES: Final = 262_144
"""The largest body. Of a larger event payload and output are left out, and `truncated` says so."""
MAX_RESPONSE_BYTES: Final = 65_536
"""Of the response so much is read and no more."""
DEFAULT_TOLERANCE_SECONDS: Final = 300.0
_MIN_SECRET_BYTES: Final = 16
_SHOWN_CHARS: Final = 300
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_LARGE_FIELDS: Final = (("payload", "output", "failure_detail"), ("tags", "add_tags"))
"""What is left out of a body that is too large, and then what else, if it still is."""
_OWN_HEADERS: Final = frozenset(
    ("connection", "content-length", "content-type", "transfer-encoding", "user-agent")
) | {name.lower() for name in (ID_HEADER, EVENT_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)}
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"([!-~]([ -~\t]*[!-~])?)?")
_PRINTABLE: Final = re.compile(r"[ -~]*")
_SECONDS: Final = re.compile(r"[0-9]{1,12}")
_BLANK_OR_CONTROL: Final = re.compile(r"[\x00-\x20\x7f-\xa0\s]")


class WebhookRefused(TidelogError):
    """The receiver did not answer with a 2xx status. The delivery is tried again, as any failed one."""


class BadSignature(TidelogError):
    """A request is not signed with this secret, or not lately."""


def webhook(
    url: str,
    *,
    secret: str | bytes,
    timeout: float = 20.0,
    headers: Mapping[str, str] | None = None,
    allow_http_localhost: bool = False,
    ca_file: str | None = None,
    with_job: bool = False,
) -> Callable[[ObserverContext], Awaitable[None]]:
    """A handler that posts each transition, as JSON, to an address.

    The body is `{"id", "observer", "transition", "job"}`; `job` is the JobRecord, or null unless `with_job`.
    `Tidelog-Id` is the idempotency key, the same in every try; `Tidelog-Timestamp` is the second of the try;
    `Tidelog-Signature` is `v1=` and the hex HMAC-SHA256 over `<id>.<timestamp>.<body>`.

    2xx means done. Everything else is a failed try, which is made again as the observer's retry policy says,
    4xx included: a receiver that is deployed wrongly must lose nothing. 410 (Gone) too becomes a dead letter
    in the end. Redirects are not followed, and are failures.

    Example:
        `app.observer("crm", states=["Succeeded"])(webhook("https://crm.example/hook", secret=secret))`

    Args:
        url: an `https://` address without user and password.
        secret: shared with the receiver, at least 16 bytes.
        timeout: seconds for the whole of one request; keep it under the observer's own.
        headers: more headers, such as `Authorization`. Those that say how the body is sent or signed are
            Tidelog's own.
        allow_http_localhost: let `http://` to this very host pass, for development.
        ca_file: PEM of the authorities to trust instead of the public ones.
        with_job: send the job as it was right after the transition, with its payload and tags.

    Raises:
        BadObserver: the address, the secret, the timeout, a header or the authorities cannot be used.
    """
    _check_address(url, allow_http_localhost=allow_http_localhost)
    key = secret.encode() if isinstance(secret, str) else secret
    if len(key) < _MIN_SECRET_BYTES:
        raise BadObserver(f"The secret of the webhook has {len(key)} bytes; use {_MIN_SECRET_BYTES} or more.")
    if not timeout > 0:
        raise BadObserver(f"The timeout of the webhook is {timeout} s; it must be more than 0 s.")
    more = _checked_headers(headers or {})
    tls = httpx.create_ssl_context() if ca_file is None else _trusting(ca_file)

    async def post(ctx: ObserverContext) -> None:
        record = await ctx.job() if with_job else None
        body = _body(ctx, None if record is None else to_wire(record))
        timestamp = str(int(time.time()))
        sent = {
            **more,
            "Content-Type": "application/json",
            "User-Agent": "tidelog-webhook",
            ID_HEADER: ctx.idempotency_key,
            EVENT_HEADER: ctx.transition.TYPE,
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign(key, ctx.idempotency_key, timestamp, body),
        }
        # A client for each try: it belongs to the loop that it was made on, and that may be left behind.
        async with httpx.AsyncClient(
            verify=tls, timeout=timeout, follow_redirects=False, trust_env=False
        ) as client:
            await _post(client, url, sent, body, timeout)

    return post


def sign(secret: bytes, event_id: str, timestamp: str, body: bytes) -> str:
    """The value of `Tidelog-Signature`."""
    digest = hmac.new(secret, b".".join((event_id.encode(), timestamp.encode(), body)), sha256)
    return f"v1={digest.hexdigest()}"


def verify(
    secret: str | bytes,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_seconds: float = DEFAULT_TOLERANCE_SECONDS,
    now: float | None = None,
) -> str:
    """Check a request that a webhook sent, in the receiver; the id by which to drop what came before.

    Args:
        secret: shared with the sender.
        headers: of the request, under whatever case.
        body: to the byte, before anything parses it.
        tolerance_seconds: how old the request may be, or how far ahead the sender's clock.
        now: seconds since 1970; the present when absent.

    Raises:
        BadSignature: a header is missing, the time is too far off, or the signature is another one.
    """
    found = {name.lower(): value for name, value in headers.items()}
    try:
        event_id = found[ID_HEADER.lower()]
        timestamp = found[TIMESTAMP_HEADER.lower()]
        given = found[SIGNATURE_HEADER.lower()]
    except KeyError as error:
        raise BadSignature(f"The header {error.args[0]} is missing.") from None
    # A stranger wrote these: nothing but `BadSignature` may come of them, whatever they are.
    if not _SECONDS.fullmatch(timestamp):
        raise BadSignature(f"{TIMESTAMP_HEADER} is no number of seconds.")
    if not _PRINTABLE.fullmatch(event_id) or not _PRINTABLE.fullmatch(given):
        raise BadSignature(f"{ID_HEADER} and {SIGNATURE_HEADER} are printable ASCII.")
    key = secret.encode() if isinstance(secret, str) else secret
    # The signature first: what a stranger writes must not even tell the clock's difference.
    if not hmac.compare_digest(sign(key, event_id, timestamp, body), given):
        raise BadSignature("The signature is not that of this body under this secret.")
    age = abs((time.time() if now is None else now) - int(timestamp))
    if age > tolerance_seconds:
        raise BadSignature(
            f"The request was signed {age:.0f} s from now; {tolerance_seconds:g} s are allowed."
        )
    return event_id


async def _post(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], body: bytes, timeout: float
) -> None:
    try:
        # httpx bounds each step; a receiver that sends a byte a second is bounded here.
        async with (
            asyncio.timeout(timeout),
            client.stream("POST", url, headers=headers, content=body) as response,
        ):
            if response.is_success:
                return
            raise WebhookRefused(f"{_place(url)} answered {response.status_code}: {await _start(response)}")
    except TimeoutError:
        raise WebhookRefused(f"{_place(url)} did not answer within {timeout:g} s.") from None
    except httpx.HTTPError as error:
        raise WebhookRefused(f"{_place(url)} cannot be reached: {type(error).__name__}: {error}") from None


async def _start(response: httpx.Response) -> str:
    """The beginning of what the receiver says, for the person who reads the dead letter."""
    read = b""
    async for part in response.aiter_raw(4_096):
        read += part
        if len(read) >= MAX_RESPONSE_BYTES:
            break
    return read[:_SHOWN_CHARS].decode(errors="replace")


def _body(ctx: ObserverContext, job: dict[str, object] | None) -> bytes:
    transition = to_wire(ctx.transition)
    whole = {"id": ctx.idempotency_key, "observer": ctx.observer_id, "transition": transition, "job": job}
    body = orjson.dumps(whole)
    for names in _LARGE_FIELDS:
        if len(body) <= MAX_BODY_BYTES:
            break
        for part in (transition, job or {}):
            part.update(dict.fromkeys(part.keys() & names))
        body = orjson.dumps({**whole, "truncated": True})
    return body


def _check_address(url: str, *, allow_http_localhost: bool) -> None:
    # Of blanks and control characters one reader of addresses makes this, and another one that.
    if _BLANK_OR_CONTROL.search(url):
        raise BadObserver("The address of the webhook has blanks or control characters; percent-encode them.")
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
        _host = httpx.URL(url).host
    except (ValueError, httpx.InvalidURL) as error:
        raise BadObserver(f"The address of the webhook cannot be read: {error}.") from None
    if not host or parts.scheme not in {"http", "https"}:
        raise BadObserver(f"The address of the webhook is {_place(url)!r}; it must be an https:// address.")
    if parts.username is not None or parts.password is not None:
        raise BadObserver("The address of the webhook has a user or password; send a header instead.")
    if parts.scheme == "http" and not (allow_http_localhost and host in _LOCAL):
        raise BadObserver(
            f"The address of the webhook, {_place(url)}, is not https://. Only for this very host, and with "
            "allow_http_localhost=True, http:// passes."
        )


def _checked_headers(headers: Mapping[str, object]) -> dict[str, str]:
    """The headers, if they can be sent. A value may be a secret, and is in no message; nor is it in one of
    httpx, which is handed nothing that it would refuse.
    """
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise BadObserver(f"{name!r} is no name of a header for the webhook.")
        if name.lower() in _OWN_HEADERS:
            raise BadObserver(f"The header {name} of the webhook is Tidelog's own; leave it out.")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise BadObserver(
                f"The value of the header {name} of the webhook must be printable ASCII, without blanks or "
                "line breaks around it (a file that was read often ends with one: strip it)."
            )
        checked[name] = value
    return checked


def _trusting(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise BadObserver(f"The authorities of the webhook, {ca_file}, cannot be read: {error}.") from None


def _place(url: str) -> str:
    """The address without path and query: with many receivers these are secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
