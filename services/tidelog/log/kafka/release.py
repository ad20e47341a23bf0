"""Which release of Kafka a broker is, from the features that it offers: it does not tell by its name.

A broker lists the range of each feature that it supports in version 3 of its answer about API versions
(KIP-584). The highest `metadata.version` grows with nearly every release (KIP-778). aiokafka speaks the
versions before that, so the request is described here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import ClassVar, Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.api import Request, RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

from tidelog.together import together

_API_VERSIONS: Final = 18
_SUPPORTED_FEATURES: Final = 0
"""The number of that field among the tagged ones of the answer."""
_METADATA_VERSION: Final = "metadata.version"
_SOFTWARE: Final = ("tidelog", "1")
_FIRST_LEVELS: Final = ((26, "4.1"), (22, "4.0"), (21, "3.9"), (20, "3.8"), (15, "3.7"))
"""The first level of `metadata.version` of each release that Tidelog supports, the newest first."""
_FIRST_UNKNOWN: Final = 28

_FEATURES: Final = CompactArray(
    ("name", CompactString("utf-8")), ("min", Int16), ("max", Int16), ("tags", TaggedFields)
)


class _Answer(Response):  # type: ignore[misc] # aiokafka ships no types
    API_KEY = _API_VERSIONS
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "api_versions",
            CompactArray(("api_key", Int16), ("min", Int16), ("max", Int16), ("tags", TaggedFields)),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _Question(RequestStruct):  # type: ignore[misc] # as above
    FLEXIBLE_VERSION = True
    API_KEY = _API_VERSIONS
    API_VERSION = 3
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("software_name", CompactString("utf-8")),
        ("software_version", CompactString("utf-8")),
        ("tags", TaggedFields),
    )

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> ResponseHeader_v0:
        """The one answer that never has the newer header: a client asks this before it knows anything."""
        return ResponseHeader_v0.decode(read_buffer)


class _Ask(Request[_Question]):  # type: ignore[misc] # as above
    API_KEY: ClassVar[int] = _API_VERSIONS

    def build(self, request_struct_class: type[_Question]) -> _Question:
        return request_struct_class(*_SOFTWARE, {})


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Kafka.

    Attributes:
        name: such as `4.1`; of one that is newer or older than those known here, what is known of it.
        is_supported: whether Tidelog runs on it.
    """

    name: str
    is_supported: bool


async def releases(client: AIOKafkaClient, brokers: Iterable[int]) -> list[Release]:
    """The releases of the brokers, each once, the oldest first; without those that do not tell."""
    levels = await together(_level(client, broker) for broker in brokers)
    return list(
        dict.fromkeys(release_of(level) for level in sorted(one for one in levels if one is not None))
    )


def release_of(level: int) -> Release:
    """The release whose highest `metadata.version` is this one."""
    if level >= _FIRST_UNKNOWN:
        return Release(f"newer than {_FIRST_LEVELS[0][1]}", is_supported=True)
    for first, name in _FIRST_LEVELS:
        if level >= first:
            return Release(name, is_supported=True)
    return Release(f"older than {_FIRST_LEVELS[-1][1]}", is_supported=False)


async def _level(client: AIOKafkaClient, broker: int) -> int | None:
    """The highest `metadata.version` of a broker; None of one that does not know the question or the feature.

    What is compatible with Kafka and is not Kafka may not; so nothing depends on the answer.
    """
    try:
        answer = await client.send(broker, _Ask())
    except (KafkaError, NotImplementedError):  # the latter is aiokafka's word for "not in this version"
        return None
    features = answer.tags.get(_SUPPORTED_FEATURES)
    if features is None:
        return None
    highest = {name: most for name, _, most, _ in _FEATURES.decode(BytesIO(features))}
    return highest.get(_METADATA_VERSION)
