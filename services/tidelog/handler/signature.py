"""What a handler's signature says: its arguments as a JSON object, and its result as JSON.

Everything is read once, when the job is declared, so that a mistake in a declaration is found at import and
not by the first job.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticSerializationError, PydanticUndefined

from tidelog.handler.context import JobContext
from tidelog_events.errors import TidelogError
from tidelog_events.jsontext import NULL, JsonBytes, NotStorable, from_python


class DefinitionError(TidelogError):
    """A job is declared in a way that cannot work. Raised at the declaration."""


class InvalidArguments(TidelogError):
    """The arguments of a job to enqueue do not fit the handler's type hints, or have no JSON form."""


class PayloadUndecodable(TidelogError):
    """A payload does not fit the handler's type hints (any more). The message is short and safe to store."""


class OutputNotJson(TidelogError):
    """What a handler returned has no JSON form that Tidelog keeps."""


_MAX_MESSAGE_CHARS = 500
_REFUSED_KINDS: Final[dict[Any, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{name}",
    inspect.Parameter.VAR_KEYWORD: "takes **{name}",
    inspect.Parameter.POSITIONAL_ONLY: "takes {name!r} by position only",
}
# NaN stays NaN on the way out, so that it is refused by name; pydantic would write null.
_CONFIG = ConfigDict(extra="forbid", ser_json_inf_nan="constants", hide_input_in_errors=True)


class HandlerSignature:
    """The arguments and the result of a handler, checked and turned into JSON by pydantic.

    Args:
        function: the handler; its first parameter may be a `JobContext`, which is no argument of the job.
        what: the job, for messages ("job 'send-invoice'").

    Raises:
        DefinitionError: the signature cannot be used; the message says which part of it.
    """

    def __init__(self, function: Callable[..., object], what: str) -> None:
        self._what = what
        hints = _hints(function, what)
        parameters = list(inspect.signature(function).parameters.values())
        self.wants_context = bool(parameters) and hints.get(parameters[0].name) is JobContext
        self.context_name = parameters[0].name if self.wants_context else None
        self.is_async = inspect.iscoroutinefunction(function)
        _refuse_generators(function, what)
        arguments = parameters[1:] if self.wants_context else parameters
        self._signature = inspect.Signature(arguments)
        self._names = {f"a{number}": parameter.name for number, parameter in enumerate(arguments)}
        self._model = _model(arguments, hints, what)
        self._result = _result_model(hints.get("return", Any), what)

    def encode_arguments(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> JsonBytes:
        """The payload for a call with these arguments: a JSON object of what was given, by name.

        Defaults are left to the worker that runs the job.

        Raises:
            TypeError: an argument is missing or unknown, as if the function were called.
            InvalidArguments: an argument does not fit its type hint, or has no JSON form.
        """
        given = self._signature.bind(*args, **kwargs).arguments
        try:
            model = self._model.model_validate(given)
            fields = model.model_dump(
                mode="json", by_alias=True, include=model.model_fields_set, warnings=False
            )
            return from_python(fields)
        except ValidationError as error:
            raise InvalidArguments(f"The arguments of {self._what} are wrong: {_first(error)}") from None
        except (PydanticSerializationError, NotStorable) as error:
            raise InvalidArguments(f"An argument of {self._what} has no JSON form: {error}") from None

    def decode_arguments(self, payload: JsonBytes) -> dict[str, object]:
        """The arguments that a payload holds, by name. A payload of null holds none.

        Raises:
            PayloadUndecodable: it is no object, an argument is missing, unknown, or of another form.
        """
        try:
            model = self._model.model_validate_json(b"{}" if payload == NULL else payload)
        except ValidationError as error:
            raise PayloadUndecodable(_first(error)) from None
        return {self._names[field]: getattr(model, field) for field in model.model_fields_set}

    def encode_output(self, value: object) -> JsonBytes:
        """The Job Output: the value by pydantic's serialisation of the return annotation.

        Raises:
            OutputNotJson: it has no JSON form that is kept (NaN, a lone surrogate, a type that JSON lacks).
        """
        if value is None:
            return NULL
        try:
            result = self._result.model_construct(value=value)
            return from_python(result.model_dump(mode="json", warnings=False)["value"])
        except (PydanticSerializationError, NotStorable, ValueError, RecursionError) as error:
            raise OutputNotJson(f"The output of {self._what} is no valid JSON: {error}") from None


def _hints(function: Callable[..., object], what: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise DefinitionError(
            f"The type hints of {what} cannot be read: {error}. Names in them must be importable from the "
            "handler's module when it runs, not only under TYPE_CHECKING."
        ) from None


def _refuse_generators(function: Callable[..., object], what: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(f"The handler of {what} yields; a handler returns its one result.")


def _model(parameters: list[inspect.Parameter], hints: Mapping[str, Any], what: str) -> type[BaseModel]:
    """A model with the parameters as aliases of neutral field names: a parameter may have any name."""
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        refused = _REFUSED_KINDS.get(parameter.kind)
        if refused is not None:
            raise DefinitionError(
                f"The handler of {what} {refused.format(name=parameter.name)}, and a payload is an object of "
                "named arguments: declare each argument by its name."
            )
        hint = hints.get(parameter.name, Any)
        if hint is JobContext:
            raise DefinitionError(
                f"The handler of {what} takes its JobContext as {parameter.name!r}; it must come first."
            )
        _check_hint(hint, f"the argument {parameter.name!r} of {what}")
        # The function's own default counts, so the model's is only a mark that the argument may be missing.
        default = PydanticUndefined if parameter.default is inspect.Parameter.empty else None
        fields[f"a{number}"] = (Annotated[hint, Field(alias=parameter.name)], default)
    model: type[BaseModel] = create_model(f"Arguments of {what}", __config__=_CONFIG, **fields)
    return model


def _result_model(hint: Any, what: str) -> type[BaseModel]:
    """A model around the result, since only a model takes `_CONFIG` whatever the hint is."""
    _check_hint(hint, f"the result of {what}")
    model: type[BaseModel] = create_model(f"Result of {what}", __config__=_CONFIG, value=(hint, ...))
    return model


def _check_hint(hint: Any, what: str) -> None:
    try:
        TypeAdapter(hint)
    except (PydanticUserError, TypeError, NameError) as error:
        reason = str(error).partition("\n")[0]
        raise DefinitionError(f"pydantic knows no JSON form for the type hint of {what}: {reason}") from None


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, in one short line that does not repeat the value."""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = ".".join(map(str, wrong["loc"]))
    message = f"{path}: {wrong['msg']}" if path else str(wrong["msg"])
    return message.encode(errors="backslashreplace").decode()[:_MAX_MESSAGE_CHARS]
