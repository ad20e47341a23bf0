"""Names and ids, and the partition that a name lives in (contract section 1).

A job id starts with its queue, and a queue lives in one partition: so the id alone tells where to send a
command about the job.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NewType

from tidelog_events.bounds import MAX_KEY_CHARS, MAX_MINTED_KEY_CHARS, MAX_QUEUE_CHARS
from tidelog_events.instants import Instant

QueueName = NewType("QueueName", str)
JobId = NewType("JobId", str)
ScheduleId = NewType("ScheduleId", str)
WorkerId = NewType("WorkerId", str)
ClientId = NewType("ClientId", str)
CommandId = NewType("CommandId", str)
Partition = NewType("Partition", int)
Sequence = NewType("Sequence", int)
"""The position of a transition in its partition, dense from 0."""

DEFAULT_QUEUE = QueueName("default")
NO_SEQUENCE = Sequence(-1)
"""What a reply carries when its partition has no transition yet."""

QUEUE_PATTERN = rf"[A-Za-z0-9._-]{{1,{MAX_QUEUE_CHARS}}}"
_KEY_CHARS = r"[A-Za-z0-9._:@+=-]"
JOB_ID_PATTERN = rf"{QUEUE_PATTERN}/{_KEY_CHARS}{{1,{MAX_KEY_CHARS}}}"
"""What a caller may choose."""
KNOWN_JOB_ID_PATTERN = rf"{QUEUE_PATTERN}/{_KEY_CHARS}{{1,{MAX_MINTED_KEY_CHARS}}}"
"""What a job may be called: schedules make longer keys."""
_QUEUE = re.compile(QUEUE_PATTERN, re.ASCII)
_JOB_ID = re.compile(JOB_ID_PATTERN, re.ASCII)
_KEY = re.compile(rf"{_KEY_CHARS}{{1,{MAX_KEY_CHARS}}}", re.ASCII)


_TIME_MASK = (1 << 48) - 1
_VARIANT_10 = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""Any digit with its upper two bits as RFC 9562 wants them."""


class InvalidName(ValueError):
    """A name or an id is outside its grammar."""


def queue_name(text: str) -> QueueName:
    """Check a queue name. Raises `InvalidName`."""
    if _QUEUE.fullmatch(text) is None:
        raise InvalidName(
            f"{text!r} is no queue name: 1 to {MAX_QUEUE_CHARS} characters of A-Z a-z 0-9 . _ - are"
        )
    return QueueName(text)


def job_id(queue: QueueName, key: str) -> JobId:
    """The id of the job with that key in that queue. Raises `InvalidName`."""
    made = f"{queue}/{key}"
    if _JOB_ID.fullmatch(made) is None:
        raise InvalidName(
            f"{made!r} is no job id: a queue, a slash and 1 to {MAX_KEY_CHARS} characters of "
            "A-Z a-z 0-9 . _ : @ + = - are"
        )
    return JobId(made)


def is_key(text: str) -> bool:
    """Whether a caller could have chosen the text as the key of a job."""
    return _KEY.fullmatch(text) is not None


def queue_of(entity: JobId | ScheduleId) -> QueueName:
    """The queue that an id starts with."""
    return QueueName(entity[: entity.index("/")])


def mint_key(now: Instant, *seed: int) -> str:
    """A UUIDv7 in hex, made from an instant and a position: the same input gives the same key.

    The engine mints keys for raw producers (contract section 1); a decision may not be random.
    """
    digest = int.from_bytes(blake2b(":".join(map(str, seed)).encode(), digest_size=10).digest())
    return _uuid7_hex(now // 1_000, digest)


def random_key(now: Instant, entropy: bytes) -> str:
    """A UUIDv7 in hex from an instant and 10 random bytes, for clients (as `mint_key`, in half the time)."""
    digits = entropy.hex()
    milliseconds = (now // 1_000) & _TIME_MASK
    return f"{milliseconds:012x}7{digits[:3]}{_VARIANT_10[digits[3]]}{digits[4:19]}"


def _uuid7_hex(milliseconds: int, entropy: int) -> str:
    """RFC 9562, section 5.7: 48 bits of time, version 7, 12 bits, variant 10, 62 bits."""
    high, low = (entropy >> 62) & 0xFFF, entropy & ((1 << 62) - 1)
    return f"{(milliseconds & _TIME_MASK) << 80 | 7 << 76 | high << 64 | 2 << 62 | low:032x}"


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 hash (org.apache.kafka.common.utils.Utils), as an unsigned number."""
    length = len(data)
    mask = 0xFFFFFFFF
    m = 0x5BD1E995
    h = (0x9747B28C ^ length) & mask
    end = length & ~3
    for i in range(0, end, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k ^= k >> 24
        h = (h * m & mask) ^ (k * m & mask)
    tail = length & 3
    if tail:
        h = (h ^ int.from_bytes(data[end:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


_partitions: dict[tuple[str, int], Partition] = {}
_PARTITION_CACHE_SIZE = 10_000


def partition_of(name: str, partitions: int) -> Partition:
    """The partition of a queue (or, on `replies`, of a client id): Kafka's default partitioner.

    murmur2 over the UTF-8 bytes, made positive, modulo the partition count.
    """
    known = _partitions.get((name, partitions))
    if known is not None:
        return known
    partition = Partition((murmur2(name.encode()) & 0x7FFFFFFF) % partitions)
    if len(_partitions) >= _PARTITION_CACHE_SIZE:
        _partitions.clear()
    _partitions[name, partitions] = partition
    return partition
