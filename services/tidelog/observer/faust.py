"""Transitions for Faust: an app that reads the log as it was committed, and the typed topic of its agents.

For stream processing: windows, joins, tables. Faust commits the offsets of messages that are still in flight,
so an agent may miss a transition when its process dies, and none of this carries a promise of delivery. What
must not miss one is an observer (`App.observer`).

    app = faust_app(settings, "fraud-scores")
    transitions = transition_topic(app, settings)

    @app.agent(transitions)
    async def score(stream):
        async for event in stream:
            if isinstance(event, DeadLettered):
                ...
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import faust
from faust.auth import SASLCredentials, SSLCredentials
from faust.serializers.codecs import Codec
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

from tidelog.log.kafka.options import KafkaOptions, KafkaSecurity
from tidelog_events.codec import Undecodable, UnknownVersion, decode_transition
from tidelog_events.errors import TidelogError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiokafka
    from faust.types import TopicT
    from faust.types.auth import CredentialsT

    from tidelog.settings import Settings
    from tidelog_events.transitions import Transition

logger = logging.getLogger(__name__)

_SCHEME: Final = "kafka://"


class NeedsKafka(TidelogError):
    """Faust reads from Kafka alone, and the log is another one."""


class TransitionCodec(Codec):
    """The value of a record of `tidelog.transitions` as a transition.

    A record that cannot be read, or that is of a type which this release does not know, is None: a stream
    goes on, and says in its own log what it passed over.
    """

    def _loads(self, s: bytes) -> Transition | None:
        try:
            return decode_transition(s)
        except (Undecodable, UnknownVersion) as error:
            logger.warning("a record of the transitions is passed over: %s", error)
            return None

    def _dumps(self, s: object) -> bytes:
        raise TypeError(f"only the engine writes transitions; {type(s).__name__} was not written")


class _CommittedConsumerThread(AIOKafkaConsumerThread):
    """Reads what was committed, which Faust does only for apps that write in transactions themselves."""

    def _create_worker_consumer(self, transport: Transport) -> aiokafka.AIOKafkaConsumer:
        writes_in_transactions = self.consumer.in_transaction
        self.consumer.in_transaction = True
        try:
            return super()._create_worker_consumer(transport)
        finally:
            self.consumer.in_transaction = writes_in_transactions


class _CommittedConsumer(Consumer):
    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _CommittedConsumerThread(self, loop=self.loop, beacon=self.beacon)


class _CommittedTransport(Transport):
    Consumer = _CommittedConsumer


def faust_app(settings: Settings, id: str, **options: object) -> faust.App:  # noqa: A002  Faust's own name
    """A Faust app on the installation's Kafka that reads the log as it was committed.

    Args:
        settings: of the installation: where Kafka is, and how it is spoken to.
        id: of the app, as Faust has it: its consumer group, and the prefix of the topics that it makes.
        options: further settings of Faust's own, over the ones that are chosen here.

    Raises:
        NeedsKafka: the log is not on Kafka.
    """
    kafka = require_kafka(settings)
    brokers = [f"{_SCHEME}{address}" for address in settings.log.removeprefix(_SCHEME).split(",")]
    chosen: Mapping[str, object] = {
        "broker": brokers,
        "broker_credentials": _credentials(kafka.security),
        "topic_replication_factor": _replication(kafka),
        "topic_disable_leader": True,
        "web_enabled": False,
        "store": "memory://",
    }
    app = faust.App(id, **{**chosen, **options})  # type: ignore[arg-type]  # Faust checks its settings itself
    app.transport = _CommittedTransport(app.conf.broker_consumer, app)
    return app


def require_kafka(settings: Settings) -> KafkaOptions:
    """How the cluster of the log is spoken to. Raises `NeedsKafka`."""
    if settings.kafka is None:
        raise NeedsKafka(
            f"Faust reads from Kafka alone, and the log is {settings.log}. Set TIDELOG_LOG=kafka://host:port"
        )
    return settings.kafka


def transition_topic(app: faust.App, settings: Settings) -> TopicT:
    """`tidelog.transitions` as a topic of an app: streams of `Transition | None`, by keys of bytes.

    The key is the job, schedule or queue; for None see `TransitionCodec`.
    """
    return app.topic(
        settings.topics.transitions,
        key_type=bytes,
        key_serializer="raw",
        value_serializer=TransitionCodec(),
        allow_empty=True,
    )


def _credentials(security: KafkaSecurity) -> CredentialsT | None:
    context = security.ssl_context()
    if security.uses_sasl:
        return SASLCredentials(
            username=security.username,
            password=security.password,
            mechanism=security.mechanism,
            ssl_context=context,
        )
    return None if context is None else SSLCredentials(context)


def _replication(kafka: KafkaOptions) -> int:
    return kafka.replication.factor or 1
