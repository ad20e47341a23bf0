"""What a broker's refusal of an append means in the words of the port."""

from __future__ import annotations

from aiokafka.errors import (
    InvalidProducerEpoch,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
    RecordListTooLargeError,
)

from tidelog.log.port import Fenced, LogError, OutcomeUnknown, RecordTooLarge


def append_failure(address: str, who: str, error: KafkaError) -> LogError:
    """Why an append was refused, or that nobody knows what became of it.

    Args:
        address: of the log.
        who: appended, for the message.
        error: aiokafka's.
    """
    match error:
        case ProducerFenced() | InvalidProducerEpoch():
            return Fenced(
                f"{address} takes no more from {who}: a later one was opened, or the transaction was open for"
                " too long. This one is dead for good."
            )
        case MessageSizeTooLargeError() | RecordListTooLargeError():
            return RecordTooLarge(
                f"A broker of {address} refused records of {who} as too large. Set max.message.bytes of the"
                " topics to 1048588 or more."
            )
        case _:
            return OutcomeUnknown(
                f"An append of {who} to {address} failed, and may have been written: {error}"
            )
