"""What stands in a record of the input, decided into a batch: a command, a message, or neither."""

from __future__ import annotations

import logging

from tidelog.core.decide import decide, home_partition, receive
from tidelog.core.link import UnreadableMessage, decode_link
from tidelog.core.state import PartitionState
from tidelog.engine.batch import MESSAGE, Batch
from tidelog.log.cutting import record_bytes
from tidelog.log.port import MAX_RECORD_BYTES, Record
from tidelog.log.topics import Topics
from tidelog_events.commands import Command
from tidelog_events.instants import Instant
from tidelog_events.parsing import NotACommand, Refusal, parse_command, read_object

logger = logging.getLogger("tidelog.engine")


def is_message(record: Record) -> bool:
    """Whether another partition says something, and nobody asks for anything."""
    return MESSAGE in record.headers


class Intake:
    """Takes records of the input of one partition in, one after the other."""

    def __init__(self, topics: Topics, state: PartitionState, partitions: int) -> None:
        self._commands_topic = topics.commands
        self._state = state
        self._partitions = partitions

    def receive(self, batch: Batch, record: Record, now: Instant, until: int) -> None:
        """Take a message of another partition in.

        A parent that is not known may stand among the commands that are not handled yet, since `links` and
        `commands` are two topics: its link is answered only when these are handled up to the end that they
        had after the message was read, `until`.
        """
        try:
            message = decode_link(record.value)
        except UnreadableMessage as error:
            self._reject(batch, record, str(error))
            return
        batch.add(receive(self._state, message, now, until=until))

    def take(self, batch: Batch, record: Record, now: Instant) -> None:
        """Decide the command in a record, or send it on, or reject what is none."""
        try:
            command = parse_command(read_object(record.value))
        except NotACommand as error:
            self._reject(batch, record, str(error))
            return
        if not isinstance(command, Refusal):
            home = home_partition(command, self._partitions)
            if isinstance(home, Refusal):
                command = home
            elif home is not None and home != self._state.partition:
                self._send_on(batch, record, command, home)
                return
        if isinstance(command, Refusal) and command.reply_to is None:
            self._reject(batch, record, command.message)
            return
        source = 0 if record.topic == self._commands_topic else 1
        batch.add(decide(self._state, command, now, (source, record.offset)))

    def _send_on(self, batch: Batch, record: Record, command: Command, home: int) -> None:
        """A command is sent on once: one that stands in `links` has been, and is a reject."""
        if record.topic != self._commands_topic:
            self._reject(
                batch,
                record,
                f"a {command.type} for partition {home} was sent on to partition {self._state.partition}",
            )
        elif record_bytes(record.key, record.value) > MAX_RECORD_BYTES:
            # A producer of another make may write more than the port takes.
            self._reject(batch, record, f"a {command.type} for partition {home} is too large to be sent on")
        else:
            batch.forward(record, home)

    def _reject(self, batch: Batch, record: Record, reason: str) -> None:
        logger.warning(
            "%s[%d] offset %d is rejected: %s", record.topic, record.partition, record.offset, reason
        )
        batch.reject(record, reason)
