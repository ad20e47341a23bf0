"""What an append-only log must do for Tidelog: topics, partitions, offsets, groups, fenced atomic writers.

Every adapter (memory, SQLite, Kafka) keeps every promise on this page, and one conformance suite
(`tests/conformance`) runs against each of them. The names are Kafka's, because its users know them.

All waits are bounded: each method that may wait either takes a `timeout` in seconds or raises
`LogUnavailable` after the adapter's own bound. An adapter instance belongs to the event loop that opened it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from tidelog_events.errors import TidelogError

MAX_RECORD_BYTES = 1_000_000
"""The largest record (key, value and headers together) that a log takes; Kafka's own default bound."""

MAX_NOTE_BYTES = 2_000
"""The longest note beside a committed offset, in UTF-8; Kafka's brokers take 4,096 unless set otherwise."""

NO_NOTES: Final[Mapping[int, str]] = MappingProxyType({})

TRANSACTION_SECONDS = 15.0
"""How long an append of a writer may be under way where nothing else is said."""


class LogError(TidelogError):
    """Something the log refused or could not do."""


class LogUnavailable(LogError):
    """The log did not answer in time or cannot be reached. Nothing is known to be wrong: try again."""


class Fenced(LogError):
    """Another writer has been opened under the same transactional id. This writer is dead for good."""


class OutcomeUnknown(LogError):
    """An append was sent and no answer came: it may stand in the log or not. Throw the writer away."""


class RecordTooLarge(LogError):
    """A record is over the log's bound. The whole append was aborted; nothing of it is in the log."""


class InvalidRecord(LogError):
    """A record without a key for a compacted topic, which could never tell it from another one."""


class UnknownTopic(LogError):
    """The topic or the partition does not exist. `tidelog init` creates what is missing."""


class TopicMismatch(LogError):
    """A topic exists with another partition count or cleanup policy than asked for."""


class GroupInUse(LogError):
    """A consumer group has members, so that it cannot be forgotten."""


class OffsetOutOfRange(LogError):
    """The log no longer holds the offset that was asked for, or does not hold it yet."""


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int


class Isolation(Enum):
    """What a reader sees of transactions."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


class Cleanup(Enum):
    """What a topic forgets."""

    DELETE = "delete"
    """Records older than the retention."""
    COMPACT = "compact"
    """All but the newest record of each key; a record without a value (a tombstone) removes its key."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. `retention_seconds` is for `Cleanup.DELETE`; None keeps everything."""

    name: str
    partitions: int
    cleanup: Cleanup = Cleanup.DELETE
    retention_seconds: float | None = None


class NewRecord(NamedTuple):
    """A record to append, to the partition that it names."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Record(NamedTuple):
    """A record that stands in the log. Offsets grow within a partition, and may have gaps."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class LogDescription:
    """What a log runs on.

    Attributes:
        kind: `kafka`, `sqlite` or `memory`.
        version: of what it runs on; None where it does not tell.
        brokers: how many processes keep it; 0 for a log that needs none.
        is_supported: whether Tidelog runs on all of these versions, as far as they tell.
    """

    kind: str
    version: str | None = None
    brokers: int = 0
    is_supported: bool = True


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """How safely a topic is kept, for a log that keeps several copies.

    Attributes:
        factor: copies of the partition that has the fewest.
        min_insync: copies that must have a record before it counts.
        leaderless: partitions that can be neither read nor written now.
        below_min_insync: partitions that can be read and not be written now.
        missing_copies: partitions of which a copy is away or behind.
        takes_largest: whether records of `MAX_RECORD_BYTES` are taken.
    """

    factor: int
    min_insync: int
    leaderless: tuple[int, ...]
    below_min_insync: tuple[int, ...]
    missing_copies: tuple[int, ...]
    takes_largest: bool


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as it is.

    Attributes:
        cleanup: in the log's own words, such as `delete` or `compact`; a log may know more of them.
        retention_seconds: None keeps everything.
        replicas: None for a log that keeps one copy.
    """

    name: str
    partitions: int
    cleanup: str
    retention_seconds: float | None
    replicas: ReplicaState | None = None


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A living member of a consumer group, and the partitions that it was given."""

    id: str
    host: str
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A consumer group as it is.

    Attributes:
        is_settled: whether the members have their shares; False while they are shared out anew, and
            when the log cannot tell who they are.
        committed: the next offset to read of each partition for which one was committed.
        notes: what was said beside these offsets, of the partitions for which something was.
    """

    name: str
    is_settled: bool
    members: tuple[GroupMember, ...]
    committed: Mapping[TopicPartition, int]
    notes: Mapping[TopicPartition, str] = field(default_factory=dict)


class Producer(ABC):
    """Appends records without a transaction: each one stands alone, in the order given, per partition."""

    @abstractmethod
    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> list[int]:
        """Append the records and return their offsets, in order, once the log has them for good.

        Raises:
            RecordTooLarge: one of them is over `MAX_RECORD_BYTES`; none was sent.
            InvalidRecord: one of them has no key, and its topic is compacted; none was sent.
            UnknownTopic: a topic or partition does not exist; none was sent.
            OutcomeUnknown: no answer within `timeout`; some, all or none may stand in the log.
            LogUnavailable: the log cannot be reached; nothing was sent.

        A cancellation leaves the outcome unknown.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give up the connection within a few seconds, whatever the log does."""


class Writer(ABC):
    """The one live writer of a transactional id: appends atomically over any topics and partitions."""

    @abstractmethod
    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> None:
        """Append all the records in one transaction: every reader sees all of them or none.

        No records are no transaction: the log is not asked, so that proves nothing about the fence.

        Raises:
            Fenced: a later writer was opened under this transactional id; nothing was appended.
            RecordTooLarge, InvalidRecord, UnknownTopic: the transaction was aborted; nothing was appended.
                The writer may be used again, unless the bound was a broker's own: its next append says so.
            OutcomeUnknown: throw this writer away, open another and read what stands in the log.
            LogUnavailable: nothing was appended. The writer may be used again.

        A cancellation leaves the outcome unknown: throw the writer away.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give up the connection within a few seconds. What was not committed is never seen."""


class Reader(ABC):
    """Reads partitions from given offsets. It belongs to no group and commits nothing.

    One task at a time may read. No partition can starve another one, however much it holds.
    """

    @abstractmethod
    async def read(self, *, max_records: int, timeout: float) -> list[Record]:
        """The next records of any of the partitions, in order within each; empty when `timeout` passes first.

        Returns as soon as there is one, with what else is there at once (an adapter may stop at a few MiB).
        It may return empty early when the position has moved past a gap, behind which there is nothing yet.
        A cancellation loses nothing.

        Raises:
            OffsetOutOfRange: a position is no longer (or not yet) in the log.
            LogUnavailable: the log does not answer.
        """

    @abstractmethod
    def position(self, tp: TopicPartition) -> int:
        """The offset of the next record to be read of that partition (past gaps that are known of)."""

    @abstractmethod
    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Read that partition from `offset` on."""

    @abstractmethod
    def pause(self, tp: TopicPartition) -> None:
        """Give no records of that partition until it is resumed; its position stands still."""

    @abstractmethod
    def resume(self, tp: TopicPartition) -> None:
        """Give records of a paused partition again, from its position on."""

    @abstractmethod
    async def close(self) -> None:
        """Stop reading, within a few seconds."""


class Member(ABC):
    """Membership in a consumer group over one topic: a share of its partitions, and committed offsets.

    A share is a hint, never a proof: two members may believe in the same partition for a while. What must
    be exclusive is fenced by a `Writer` or by a position kept beside the data.
    """

    @property
    @abstractmethod
    def assignment(self) -> frozenset[int]:
        """The partitions that this member should serve now."""

    @abstractmethod
    async def changed(self, *, timeout: float) -> bool:
        """Wait until the assignment has changed since the last call (True) or `timeout` has passed (False).

        The first call returns True as soon as there is a first assignment, an empty one included.
        """

    @abstractmethod
    async def committed(self, partition: int) -> int | None:
        """The offset that the group committed for a partition of the topic; None when there is none yet."""

    @abstractmethod
    async def commit(
        self, offsets: Mapping[int, int], *, timeout: float, notes: Mapping[int, str] = NO_NOTES
    ) -> None:
        """Record the next offset to read of each partition. Partitions that are not assigned are left out.

        Args:
            offsets: by partition.
            timeout: in seconds.
            notes: what to tell people who look at the group about where it stands, of those of the
                partitions where there is something to say; cut at `MAX_NOTE_BYTES`. A note is replaced or
                taken away by the next commit for its partition, and may be dropped: nothing may rest on it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Leave the group, so that the others take over at once."""


class Log(ABC):
    """A connection to a log, and the factory of everything else on this page."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Where the log is, as the setting names it, for messages to people."""

    @abstractmethod
    async def create_topics(self, topics: Sequence[TopicSpec]) -> list[str]:
        """Create the topics that do not exist and return their names. Existing ones keep their retention.

        Raises:
            TopicMismatch: one exists with another partition count or cleanup; nothing was created.
        """

    @abstractmethod
    async def partitions(self, topic: str) -> int:
        """How many partitions the topic has. Raises `UnknownTopic`."""

    @abstractmethod
    async def describe(self) -> LogDescription:
        """What the log runs on. Raises `LogUnavailable`."""

    @abstractmethod
    async def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        """The topics among these that exist, by name. Raises `LogUnavailable`."""

    @abstractmethod
    async def groups(self, prefix: str) -> list[GroupDescription]:
        """The consumer groups whose names begin with `prefix`, by name. Raises `LogUnavailable`.

        A group is there from its first member, or its first committed offset, on; one without members and
        offsets may be forgotten.
        """

    @abstractmethod
    async def forget_group(self, name: str) -> None:
        """Forget a consumer group and what it committed. Nothing happens when there is none of that name.

        Raises:
            GroupInUse: it has members; nothing was forgotten. One that died counts for some seconds.
            LogUnavailable: the log does not answer; it may be forgotten all the same.
        """

    @abstractmethod
    async def start_offset(self, tp: TopicPartition) -> int:
        """The lowest offset to read from: retention took what was below. The end offset when all is gone.

        Compaction leaves gaps and never raises it, so that a state can always be read from the start.
        """

    @abstractmethod
    async def end_offset(self, tp: TopicPartition, isolation: Isolation = Isolation.COMMITTED) -> int:
        """The offset that the next record will have at least. COMMITTED: held down by open transactions."""

    @abstractmethod
    async def offset_at(self, tp: TopicPartition, at: float) -> int:
        """The lowest offset of a record that was appended at a time (seconds since 1970) or after it.

        The committed end when there is none. It goes by the clocks of those who append, to the millisecond:
        where they differ, a record that is further on may be older.
        """

    @abstractmethod
    async def producer(self) -> Producer:
        """A producer for records that stand alone."""

    @abstractmethod
    async def writer(
        self, transactional_id: str, *, transaction_seconds: float = TRANSACTION_SECONDS
    ) -> Writer:
        """Open the writer of a transactional id and fence every earlier one.

        When this returns, no append of an earlier writer can come into the log any more.

        Args:
            transactional_id: who writes.
            transaction_seconds: how long an append may be under way. The log gives up one whose process has
                died or hangs in the middle soon after that, since readers of committed records cannot pass
                it. A log in which an append is never half done has no such moment.
        """

    @abstractmethod
    async def reader(
        self, offsets: Mapping[TopicPartition, int], isolation: Isolation = Isolation.COMMITTED
    ) -> Reader:
        """A reader of the given partitions from the given offsets."""

    @abstractmethod
    async def join(self, group: str, topic: str) -> Member:
        """Become a member of a group; returns at once, the assignment comes later."""

    @abstractmethod
    async def close(self) -> None:
        """Close what was opened here, within a few seconds."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
