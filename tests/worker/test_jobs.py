"""Jobs as code declares them: what a declaration refuses, what it describes, and its types."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, assert_type

import pytest
from pydantic import BaseModel, Field

from tidelog.handler.context import JobContext
from tidelog.handler.jobs import AnyJobDefinition, JobDecorator, JobRequest, Retry, declare
from tidelog.handler.signature import DefinitionError, InvalidArguments, PayloadUndecodable
from tidelog.worker.registry import JobRegistry, Unroutable
from tidelog_events.instants import Micros
from tidelog_events.retry import DEFAULT_RETRY, RetryPolicy


class Order(BaseModel):
    number: int
    at: datetime | None = None


REGISTRY = JobRegistry()


@declare("send", queue="billing", retry=Retry(max_attempts=5, delays=[1, 5.5]), register=REGISTRY.add)
async def send(ctx: JobContext, order_id: str, copies: int = 1) -> dict[str, str]:
    """Send an invoice."""
    return {"sent": order_id * copies, "by": ctx.job_id}


@declare("ship", register=REGISTRY.add)
def ship(order: Order, weights: list[float], model_config: int | None = None) -> int:
    return order.number + len(weights) + (model_config or 0)


@declare("anything", register=REGISTRY.add)
def anything(value):  # type: ignore[no-untyped-def]
    return value


def declared(**changes: Any) -> JobDecorator:
    return declare(**{"wire_name": "w", "register": JobRegistry().add, **changes})


async def test_a_job_is_described_with_the_functions_own_arguments() -> None:
    request = send.job("42", copies=2)
    assert_type(request, JobRequest)
    assert request == JobRequest(
        wire_name="send",
        payload=b'{"order_id":"42","copies":2}',
        queue=send.queue,
        retry=RetryPolicy(5, (Micros(1_000_000), Micros(5_500_000))),
    )
    assert send.job(order_id="42").payload == b'{"order_id":"42"}', "defaults are the worker's"


def test_the_function_itself_can_still_be_called() -> None:
    result = ship(Order(number=4), [1.5])
    assert_type(result, int)
    assert result == 5
    assert send.__doc__ == "Send an invoice."
    assert inspect.signature(ship) == inspect.signature(ship.function)


def test_arguments_are_validated_and_written_by_their_hints() -> None:
    request = ship.job(Order(number=1, at=datetime(2026, 1, 1, tzinfo=UTC)), weights=[1, 2.5], model_config=3)
    assert request.payload == (
        b'{"order":{"number":1,"at":"2026-01-01T00:00:00Z"},"weights":[1.0,2.5],"model_config":3}'
    )
    assert request.retry == DEFAULT_RETRY
    decoded = ship.signature.decode_arguments(request.payload)
    ship_anything: Callable[..., object] = ship
    assert ship_anything(**decoded) == 6


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: send.job(), TypeError, "order_id"),  # type: ignore[call-arg]
        (lambda: send.job("1", 2, 3), TypeError, "too many"),  # type: ignore[call-arg]
        (lambda: send.job(7), InvalidArguments, "order_id"),  # type: ignore[arg-type]
        (lambda: ship.job(Order(number=1), [float("nan")]), InvalidArguments, "JSON"),
        (lambda: ship.job(Order(number=1), [float("inf")]), InvalidArguments, "JSON"),
        (lambda: ship.job("no order", []), InvalidArguments, "order"),  # type: ignore[arg-type]
        (lambda: anything.job(object()), InvalidArguments, "JSON"),
        (lambda: anything.job("\ud800"), InvalidArguments, "JSON"),
        (lambda: anything.job({"x": float("nan")}), InvalidArguments, "JSON"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(
    call: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("value", [None, [1, {"a": 2**80}], "text", 1.5, True])
def test_an_argument_without_a_hint_is_any_json(value: object) -> None:
    payload = anything.job(value).payload
    assert anything.signature.decode_arguments(payload) == {"value": value}


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"{}", "order_id: Field required"),
        (b"null", "order_id: Field required"),
        (b"[1]", "should be an object"),
        (b'{"order_id":7}', "order_id: Input should be a valid string"),
        (b'{"order_id":"7","colour":"red"}', "colour: Extra inputs"),
    ],
)
def test_a_payload_that_does_not_fit_is_told_in_one_short_line(payload: bytes, message: str) -> None:
    with pytest.raises(PayloadUndecodable, match=message) as raised:
        send.signature.decode_arguments(payload)
    assert "\n" not in str(raised.value)


def test_a_payload_of_null_is_no_arguments() -> None:
    @declared()
    def nothing() -> None: ...

    assert nothing.signature.decode_arguments(b"null") == {}


def test_handlers_are_found_by_wire_name() -> None:
    assert REGISTRY.find("send") is send
    with pytest.raises(Unroutable, match=r"^no handler registered for wire name 'unknown'$"):
        REGISTRY.find("unknown")
    assert REGISTRY.queues == ("billing", "default")


def test_two_handlers_for_one_wire_name_are_refused() -> None:
    registry = JobRegistry()

    @declare("twice", register=registry.add)
    def first() -> None: ...

    with pytest.raises(DefinitionError, match=r"'twice' has two handlers, .*first and .*second"):

        @declare("twice", register=registry.add)
        def second() -> None: ...

    assert [definition.wire_name for definition in registry] == ["twice"]
    assert first.wire_name == "twice"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wire_name": ""}, "wire name"),
        ({"wire_name": len}, r'is no wire name\. Say .* as in @app\.job\("send-invoice"\)'),
        ({"retry": 3}, "retry is 3; write Retry"),
        ({"wire_name": "n" * 129}, "wire name"),
        ({"queue": "a b"}, "queue"),
        ({"queue": ""}, "queue"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
    ],
)
def test_bad_declarations_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        declared(**changes)(lambda: None)


def test_a_wire_name_of_exactly_the_bound_is_accepted() -> None:
    assert declared(wire_name="n" * 128)(lambda: None).wire_name == "n" * 128


class Opaque:
    pass


def _star(*args: int) -> None: ...
def _double_star(**options: int) -> None: ...
def _positional(order: int, /) -> None: ...
def _late_context(order: int, ctx: JobContext) -> None: ...
def _opaque_argument(value: Opaque) -> None: ...
def _opaque_result() -> Opaque: ...  # type: ignore[empty-body]
def _generator() -> Iterator[int]:
    yield 1


async def _async_generator() -> AsyncIterator[int]:
    yield 1


def _unknown_hint(value: NoSuchName) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_star, r"\*args"),
        (_double_star, r"\*\*options"),
        (_positional, "position only"),
        (_late_context, "must come first"),
        (_opaque_argument, "argument 'value'"),
        (_opaque_result, "result"),
        (_generator, "yields"),
        (_async_generator, "yields"),
        (_unknown_hint, "NoSuchName"),
        (send, "is a job already"),
    ],
)
def test_bad_signatures_are_refused_at_the_declaration(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        declared()(function)


def test_any_parameter_name_is_possible() -> None:
    @declared()
    def odd(json: int, copy: int, self: int, _private: int, a0: int, schema: int = 6) -> None: ...

    payload = odd.job(1, 2, 3, 4, a0=5).payload
    assert payload == b'{"json":1,"copy":2,"self":3,"_private":4,"a0":5}'
    decoded = odd.signature.decode_arguments(payload)
    assert decoded == {"json": 1, "copy": 2, "self": 3, "_private": 4, "a0": 5}


def test_constraints_of_hints_count() -> None:
    @declared()
    def bounded(number: Annotated[int, Field(ge=1)]) -> None: ...

    with pytest.raises(InvalidArguments, match="greater than or equal to 1"):
        bounded.job(0)


@pytest.mark.parametrize(
    ("attempts", "delays"), [(0, None), (1_001, None), (1, []), (1, [-1]), (1, [0] * 21), (1, [float("nan")])]
)
def test_retry_numbers_are_bounded(attempts: int, delays: list[float] | None) -> None:
    with pytest.raises(ValueError, match=r"must be|there are"):
        Retry(max_attempts=attempts, delays=delays)


def test_definitions_are_seen_as_such() -> None:
    definition: AnyJobDefinition = send
    assert repr(definition) == "<job 'send' on billing>"
