"""The settings of an installation, from the environment and from `tidelog.toml` (contract section 11)."""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from tidelog.core.state import Retention
from tidelog.log.kafka.options import (
    KafkaOptions,
    KafkaReplication,
    KafkaSecurity,
    Mechanism,
    Protocol,
    WrongKafkaOptions,
)
from tidelog.log.topics import DEFAULT_PARTITIONS, DEFAULT_PREFIX, Topics
from tidelog_events.errors import TidelogError
from tidelog_events.instants import MAX_SECONDS, from_seconds
from tidelog_projections.history import History

_logger = logging.getLogger(__name__)

SETTINGS_FILE: Final = "tidelog.toml"
PREFIX: Final = "TIDELOG_"
_TESTS_PREFIX: Final = "TIDELOG_TEST_"
_MAX_PARTITIONS: Final = 10_000
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 24 * 3_600}
_SWITCH: Final = {"on": True, "true": True, "off": False, "false": False}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.ASCII)
_TOPIC_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_KAFKA_SCHEME: Final = "kafka://"
_LOG_SCHEMES: Final = ("sqlite:", _KAFKA_SCHEME)
_POSTGRES_SCHEMES: Final = ("postgresql://", "postgres://", "embedded:")
_KAFKA_FIELDS: Final = "kafka_"
_MAX_REPLICAS: Final = 32_767
_SECRET: Final = frozenset({"postgres", "kafka_sasl_password"})
"""Settings whose value may hold a password: it is in no message."""


class SettingsError(TidelogError):
    """Settings are wrong. The message names each variable (or the key of the file) and what it should be."""


def _read_duration(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and (matched := _DURATION.fullmatch(value.strip())) is not None:
        seconds = float(matched[1]) * _UNITS[matched[2]]
    else:
        raise ValueError("must be a number of seconds, or such as 90m, 24h or 14d")
    if not 0 < seconds <= MAX_SECONDS:
        raise ValueError(f"must be more than 0 and at most {MAX_SECONDS} seconds")
    return seconds


def _read_switch(value: object) -> object:
    if isinstance(value, str) and value.strip().lower() in _SWITCH:
        return _SWITCH[value.strip().lower()]
    if isinstance(value, bool):
        return value
    raise ValueError("must be on or off")


def _check_scheme(schemes: tuple[str, ...], value: str) -> str:
    if any(value.startswith(scheme) and value != scheme for scheme in schemes):
        return value
    raise ValueError(f"must start with {', '.join(schemes[:-1])} or {schemes[-1]} and name something")


def _no_truth(value: object) -> object:
    if isinstance(value, bool):  # which pydantic would count as 0 or 1
        raise ValueError("must be a whole number")  # noqa: TRY004 - pydantic listens for this one
    return value


def _check_prefix(value: str) -> str:
    if _TOPIC_PREFIX.fullmatch(value) is None:
        raise ValueError("must be 1 to 100 characters of A-Z a-z 0-9 . _ -")
    return value


def _check_file(value: str) -> str:
    if not Path(value).is_file():
        raise ValueError("there is no such file")
    return value


def _check_not_empty(value: str) -> str:
    if not value:
        raise ValueError("must not be empty; take it away if it is not needed")
    return value


PartitionCount = Annotated[int, BeforeValidator(_no_truth), Field(ge=1, le=_MAX_PARTITIONS)]
Switch = Annotated[bool, BeforeValidator(_read_switch)]
Duration = Annotated[float, BeforeValidator(_read_duration)]
File = Annotated[str, AfterValidator(_check_file)]
Text = Annotated[str, AfterValidator(_check_not_empty)]
ReplicaCount = Annotated[int, BeforeValidator(_no_truth), Field(ge=1, le=_MAX_REPLICAS)]

_DAY: Final = 24 * 3_600.0


class Settings(BaseSettings):
    """Where things are, and how long they are kept.

    Each field is the variable `TIDELOG_<NAME>`, or the key `<name>` of `tidelog.toml` in the working
    directory; the environment wins, and arguments win over both. What no setting reads is warned about.

    Attributes:
        log: `sqlite:PATH` or `kafka://host:port[,host:port]`.
        postgres: a `postgresql://` DSN, or `embedded:FOLDER`.
        prefix: of the topics' names.
        partitions: how many the topics are created with; it cannot be changed later.
        retention_succeeded, retention_cancelled, retention_dead_lettered, retention_quarantined: how long an
            ended job is kept, in seconds, or written as `90m`, `24h`, `14d`.
        history: what the projection keeps of a job's history.
        archive: whether jobs that are purged stay readable in Postgres.
        kafka_security_protocol: how brokers are spoken to.
        kafka_ca_file: PEM of the authorities to trust; the system's own without it.
        kafka_certificate_file: PEM of this client's certificate, where brokers ask for one.
        kafka_key_file: PEM of its key, unless that stands in the same file.
        kafka_sasl_mechanism: how this client proves who it is, for the SASL protocols.
        kafka_sasl_username: as whom it does so.
        kafka_sasl_password: the password of that user.
        kafka_replication_factor: copies of the topics that are created; 3, or as many as there are brokers,
            without it.
        kafka_min_insync_replicas: copies that must have a record before it counts; one less than there are,
            at least 1, without it.

    Raises:
        SettingsError: a value is wrong, or the file is no TOML.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, toml_file=SETTINGS_FILE, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    log: Annotated[str, AfterValidator(lambda value: _check_scheme(_LOG_SCHEMES, value))] = (
        "sqlite:.tidelog/log.db"
    )
    postgres: Annotated[
        str, AfterValidator(lambda value: _check_scheme(_POSTGRES_SCHEMES, value)), Field(repr=False)
    ] = "embedded:.tidelog/postgres"
    prefix: Annotated[str, AfterValidator(_check_prefix)] = DEFAULT_PREFIX
    partitions: Annotated[int, BeforeValidator(_no_truth), Field(ge=1, le=_MAX_PARTITIONS)] = (
        DEFAULT_PARTITIONS
    )
    retention_succeeded: Duration = _DAY
    retention_cancelled: Duration = _DAY
    retention_dead_lettered: Duration = 14 * _DAY
    retention_quarantined: Duration = 14 * _DAY
    history: History = History.DETAIL
    archive: Switch = False
    kafka_security_protocol: Protocol = "PLAINTEXT"
    kafka_ca_file: File | None = None
    kafka_certificate_file: File | None = None
    kafka_key_file: File | None = None
    kafka_sasl_mechanism: Mechanism = "PLAIN"
    kafka_sasl_username: Text | None = None
    kafka_sasl_password: Annotated[Text | None, Field(repr=False)] = None
    kafka_replication_factor: ReplicaCount | None = None
    kafka_min_insync_replicas: ReplicaCount | None = None

    @property
    def kafka(self) -> KafkaOptions | None:
        """What is said about the Kafka cluster; None when the log is another one."""
        if not self.log.startswith(_KAFKA_SCHEME):
            return None
        return KafkaOptions(
            KafkaSecurity(
                protocol=self.kafka_security_protocol,
                ca_file=self.kafka_ca_file,
                certificate_file=self.kafka_certificate_file,
                key_file=self.kafka_key_file,
                mechanism=self.kafka_sasl_mechanism,
                username=self.kafka_sasl_username,
                password=self.kafka_sasl_password,
            ),
            KafkaReplication(self.kafka_replication_factor, self.kafka_min_insync_replicas),
        )

    @property
    def topics(self) -> Topics:
        """The names of the topics."""
        return Topics(self.prefix)

    @property
    def retention(self) -> Retention:
        """How long ended jobs are kept, in the form that engines use."""
        return Retention(
            succeeded=from_seconds(self.retention_succeeded),
            cancelled=from_seconds(self.retention_cancelled),
            dead_lettered=from_seconds(self.retention_dead_lettered),
            quarantined=from_seconds(self.retention_quarantined),
        )

    @model_validator(mode="wrap")
    @classmethod
    def _explain_what_is_wrong(cls, given: object, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            settings = validate(given)
        except ValidationError as error:
            raise SettingsError(_explain(error)) from None
        _refuse_unusable_kafka(settings)
        return settings

    def model_post_init(self, _context: object, /) -> None:
        """Warn of what may be a typing error, and of what was said for nothing."""
        _warn_of_unknown(os.environ, _file_keys())
        _warn_of_unused_kafka(self)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature; no .env is read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the file."""
        try:
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise SettingsError(
                f"{SETTINGS_FILE} cannot be read as TOML: {error}. Correct it or take it away."
            ) from None


def _file_keys() -> Iterable[str]:
    path = Path(SETTINGS_FILE)
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else ()


def _explain(error: ValidationError) -> str:
    """Every wrong setting, by the name under which it was said."""
    wrong = [
        f"{_said_as(str(detail['loc'][0]))}: {_reason(detail['msg'])}"
        for detail in error.errors(include_url=False, include_input=False)
    ]
    return f"Wrong settings. {'; '.join(wrong)}. Correct this and start again."


def _refuse_unusable_kafka(settings: Settings) -> None:
    """Refuse settings that are right one by one, and do not fit each other."""
    if not settings.log.startswith(_KAFKA_SCHEME):
        return
    wrong: list[str] = []
    protocol = settings.kafka_security_protocol
    if protocol.startswith("SASL"):
        wrong += [
            f"{_names_of(field)} must be given: the security protocol is {protocol}"
            for field in ("kafka_sasl_username", "kafka_sasl_password")
            if getattr(settings, field) is None
        ]
    if settings.kafka_key_file is not None and settings.kafka_certificate_file is None:
        wrong.append(f"{_names_of('kafka_certificate_file')} must be given: there is a key file")
    factor, min_insync = settings.kafka_replication_factor, settings.kafka_min_insync_replicas
    if factor is not None and min_insync is not None and min_insync > factor:
        wrong.append(
            f"{_said_as('kafka_min_insync_replicas')}: must be at most the replication factor, {factor}"
        )
    if not wrong and settings.kafka is not None:
        try:
            settings.kafka.security.ssl_context()
        except WrongKafkaOptions as error:
            said = [field for field in _TLS_FILES if getattr(settings, field) is not None]
            wrong.append(f"{', '.join(map(_said_as, said))}: {str(error).rstrip('.')}")
    if wrong:
        raise SettingsError(f"Wrong settings. {'; '.join(wrong)}. Correct this and start again.")


_TLS_FILES: Final = ("kafka_ca_file", "kafka_certificate_file", "kafka_key_file")
_SASL_FIELDS: Final = ("kafka_sasl_mechanism", "kafka_sasl_username", "kafka_sasl_password")


def _warn_of_unused_kafka(settings: Settings) -> None:
    said = sorted(field for field in settings.model_fields_set if field.startswith(_KAFKA_FIELDS))
    if not settings.log.startswith(_KAFKA_SCHEME):
        _warn_of_unused(said, f"the log is {settings.log}")
        return
    protocol = settings.kafka_security_protocol
    if "SSL" not in protocol:
        _warn_of_unused([field for field in said if field in _TLS_FILES], f"the protocol is {protocol}")
    if "SASL" not in protocol:
        _warn_of_unused([field for field in said if field in _SASL_FIELDS], f"the protocol is {protocol}")


def _warn_of_unused(fields: list[str], reason: str) -> None:
    for field in fields:
        _logger.warning("%s is said, and nothing uses it: %s.", _names_of(field), reason)


def _names_of(field: str) -> str:
    return f"{PREFIX}{field.upper()} ({field} in {SETTINGS_FILE})"


def _said_as(field: str) -> str:
    variable = f"{PREFIX}{field.upper()}"
    said = {name.upper(): value for name, value in os.environ.items()}.get(variable)
    if said is None:
        return _names_of(field)
    return variable if field in _SECRET else f"{variable}={said!r}"


def _reason(message: str) -> str:
    return message.removeprefix("Value error, ").replace("Input should be", "must be", 1)


def _warn_of_unknown(variables: Iterable[str], keys: Iterable[str]) -> None:
    known = list(Settings.model_fields)
    for name in sorted(variables):
        upper = name.upper()  # pydantic reads variables whatever their case
        if upper.startswith(PREFIX) and not upper.startswith(_TESTS_PREFIX):
            field = upper.removeprefix(PREFIX).lower()
            _warn_unless_known(f"The environment variable {name}", field, known)
    for key in keys:
        _warn_unless_known(f"The key {key!r} of {SETTINGS_FILE}", key, known)


def _warn_unless_known(what: str, field: str, known: list[str]) -> None:
    if field not in known:
        near = get_close_matches(field, known, 1)
        hint = f" Did you mean {_names_of(near[0])}?" if near else ""
        _logger.warning("%s is no setting of Tidelog and is ignored.%s", what, hint)
