"""The engines of a harness: the real decisions over all partitions, on virtual time, in memory.

Commands come in and answers go out as the bytes that a log would hold, so what cannot be written or read is
found out here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import orjson

from tidelog.core.decision import Addressed, Output
from tidelog.core.installation import Installation
from tidelog.testing.ledger import Ledger
from tidelog_events.codec import decode_answer, encode_answer
from tidelog_events.identity import ClientId, QueueName
from tidelog_events.instants import Instant, format_instant
from tidelog_events.parsing import parse_command, read_object
from tidelog_events.replies import Answer

Inbox = Callable[[Answer], None]


class VirtualEngine:
    """All engines of an installation.

    Attributes:
        ledger: what they wrote.
        decisions: how many commands were decided; who wants to know whether there was one looks here.
    """

    def __init__(self, partitions: int, start: Instant) -> None:
        self._installation = Installation(partitions, now=start)
        self._inboxes: dict[ClientId, Inbox] = {}
        self._script: list[tuple[Instant, bytes]] = []
        self.ledger = Ledger()
        self.decisions = 0

    @property
    def now(self) -> Instant:
        """The instant that virtual time has come to."""
        return self._installation.now

    @property
    def partitions(self) -> int:
        """How many there are."""
        return self._installation.partitions

    def open_inbox(self, client_id: ClientId, inbox: Inbox) -> None:
        """Let the answers for that client go there. Called while a command is decided."""
        self._inboxes[client_id] = inbox

    def decide(self, raw: bytes) -> None:
        """Decide a command, as it would stand in the log."""
        self.pass_time(self.now)
        self.decisions += 1
        self._script.append((self.now, raw))
        self._take(self._installation.command(parse_command(read_object(raw)), (self.decisions,)))

    def pass_time(self, until: Instant) -> None:
        """Let every timer of the engines fire at its own instant, up to and with that one."""
        self._take(self._installation.pass_time(until))

    def next_timer(self) -> Instant | None:
        """The earliest instant at which something may fall due by itself."""
        return self._installation.next_timer()

    def next_due(self, queue: QueueName) -> Instant | None:
        """From when on a claim on the queue would be granted something, as far as is known now."""
        return self._installation.next_due(queue)

    def has_due_work(self, queue: QueueName) -> bool:
        """Whether a claim on the queue would be granted something now."""
        due = self.next_due(queue)
        return due is not None and due <= self.now

    def script(self) -> list[bytes]:
        """All that was decided, as lines for `tidelog replay` (contract section 6)."""
        lines = [
            b'{"at":%s,"command":%s}' % (orjson.dumps(format_instant(at)), raw) for at, raw in self._script
        ]
        return [*lines, orjson.dumps({"at": format_instant(self.now)})]

    def _take(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            if isinstance(output, Addressed):
                self._hand_out(output)
            else:
                self.ledger.append(output)

    def _hand_out(self, addressed: Addressed) -> None:
        inbox = None if addressed.to is None else self._inboxes.get(addressed.to)
        if inbox is None:
            return
        answer = decode_answer(encode_answer(addressed.answer))
        if answer is not None:
            inbox(answer)
