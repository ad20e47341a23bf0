"""Commands: what anybody may ask of an engine (contract section 3), and the refusal of what is malformed.

The order of the fields is the order in which they are checked. null for an optional field means absent,
except where it says something of its own (`limit`, `next_due`).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StrictBool,
    StrictInt,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tidelog_events import bounds
from tidelog_events.command_fields import (
    OF_ANY_LENGTH,
    ActorField,
    ChosenJobId,
    ClientIdField,
    CommandIdField,
    CutText,
    JsonField,
    KnownJobId,
    PositiveSecondsField,
    QueueField,
    ScheduleIdField,
    SecondsField,
    TagsField,
    TimeField,
    WholeNumber,
    WorkerIdField,
    distinct,
    known_zone,
    readable_cron,
    text_of,
    within_bounds,
)
from tidelog_events.identity import (
    DEFAULT_QUEUE,
    QueueName,
    queue_of,
)
from tidelog_events.instants import (
    Micros,
)
from tidelog_events.jsontext import NULL
from tidelog_events.retry import DEFAULT_MAX_ATTEMPTS, DEFAULT_RETRY, RetryPolicy
from tidelog_events.states import CatchUp, DependencyMode

DEFAULT_LEASE = Micros(60_000_000)


class Fields(BaseModel):
    """An object whose unknown fields are refused, and whose null optional fields are absent."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    NULL_SPEAKS: ClassVar[frozenset[str]] = frozenset()
    """Fields for which null says something else than nothing."""

    KNOWN: ClassVar[frozenset[str]] = frozenset()
    """The names of the fields."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.KNOWN = frozenset(cls.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _check_the_names(cls, given: Any) -> Any:
        """Refuse the first unknown field before any other is looked at, and leave out the absent ones."""
        if not isinstance(given, dict):
            return given
        if not given.keys() <= cls.KNOWN:
            unknown = next(name for name in given if name not in cls.KNOWN)
            # pydantic writes the context into its message, which must be UTF-8.
            field = unknown.encode(errors="replace").decode()
            raise PydanticCustomError("at_field", "is not a field here", {"field": field})
        if None in given.values():
            return {
                name: value for name, value in given.items() if value is not None or name in cls.NULL_SPEAKS
            }
        return given


class Retry(Fields):
    """The retry policy of a job as a command gives it."""

    max_attempts: Annotated[StrictInt, Field(ge=1, le=bounds.MAX_ATTEMPTS), OF_ANY_LENGTH] = (
        DEFAULT_MAX_ATTEMPTS
    )
    delays: Annotated[list[SecondsField], Field(min_length=1, max_length=bounds.MAX_DELAYS)] | None = None

    @property
    def policy(self) -> RetryPolicy:
        """The policy in the form that the rules use."""
        return RetryPolicy(self.max_attempts, None if self.delays is None else tuple(self.delays))


class CommandFields(Fields):
    """What every command may carry."""

    command_id: CommandIdField | None = None
    reply_to: ClientIdField | None = None
    actor: ActorField | None = None


class Enqueue(CommandFields):
    """Bear a job."""

    type: Literal["enqueue"] = "enqueue"
    queue: Annotated[
        QueueField | None, Field(description=f"`{DEFAULT_QUEUE}` when absent, or that of the job id.")
    ] = None
    wire_name: Annotated[
        str,
        text_of(min_chars=1),
        Field(description=f"More than {bounds.MAX_WIRE_NAME_CHARS} characters are `WireNameTooLong`."),
    ]
    payload: Annotated[
        JsonField,
        Field(
            description=f"More than {bounds.MAX_PAYLOAD_BYTES} bytes of compact JSON are `PayloadTooLarge`."
        ),
    ] = NULL
    job_id: ChosenJobId | None = None
    due_time: TimeField | None = None
    parents: Annotated[
        tuple[KnownJobId, ...],
        FailFast(),
        AfterValidator(distinct),
        Field(description=f"More than {bounds.MAX_PARENTS} distinct ones are `TooManyParents`."),
    ] = ()
    mode: DependencyMode = DependencyMode.ON_SUCCESS
    tags: TagsField = ()
    retry: Retry | None = None
    trace_context: Annotated[str, text_of(bounds.MAX_TRACE_CONTEXT_CHARS)] | None = None
    workflow_id: Annotated[str, text_of(bounds.MAX_WORKFLOW_ID_CHARS)] | None = None
    schedule_id: ScheduleIdField | None = None

    @model_validator(mode="after")
    def _agree_on_the_queue(self) -> Self:
        if self.job_id is not None and self.queue is not None and queue_of(self.job_id) != self.queue:
            raise PydanticCustomError(
                "at_field",
                "{message}",
                {"field": "job_id", "message": f"must start with its queue, {self.queue}/"},
            )
        if self.schedule_id is not None and queue_of(self.schedule_id) != self.target_queue:
            raise PydanticCustomError(
                "at_field",
                "{message}",
                {"field": "schedule_id", "message": f"must be of the job's own queue, {self.target_queue}"},
            )
        return self

    @property
    def target_queue(self) -> QueueName:
        """The queue that the job is for: as said, else the job id's, else the default one."""
        if self.queue is not None:
            return self.queue
        return DEFAULT_QUEUE if self.job_id is None else queue_of(self.job_id)

    @property
    def retry_policy(self) -> RetryPolicy:
        """The policy as given, or the default one."""
        return DEFAULT_RETRY if self.retry is None else self.retry.policy


class Claim(CommandFields):
    """Ask for jobs of a queue; with `wait_seconds` the claim is parked until there are some."""

    type: Literal["claim"] = "claim"
    worker_id: WorkerIdField
    queue: QueueField
    max_jobs: Annotated[StrictInt, Field(ge=1), OF_ANY_LENGTH] = 1
    lease_seconds: PositiveSecondsField = DEFAULT_LEASE
    wait_seconds: SecondsField = Micros(0)


class LeaseRow(Fields):
    """A lease that a heartbeat renews."""

    job_id: KnownJobId
    attempt: WholeNumber
    lease: WholeNumber | None = None


class Heartbeat(CommandFields):
    """Renew leases from now on."""

    type: Literal["heartbeat"] = "heartbeat"
    worker_id: WorkerIdField
    leases: Annotated[list[LeaseRow], FailFast()]
    lease_seconds: PositiveSecondsField = DEFAULT_LEASE


class Success(LeaseRow):
    """The handler finished."""

    outcome: Literal["Success"] = "Success"
    output: JsonField = NULL
    add_tags: TagsField = ()


class Failure(LeaseRow):
    """The handler failed. `next_due`: a time = retry then, null = no retry, absent = the job's own policy."""

    NULL_SPEAKS = frozenset({"next_due"})

    outcome: Literal["Failure"] = "Failure"
    error: CutText
    failure_detail: CutText | None = None
    next_due: TimeField | None = None
    add_tags: TagsField = ()

    @property
    def follows_policy(self) -> bool:
        """Whether the job's own retry policy decides."""
        return "next_due" not in self.model_fields_set


class CancelledOutcome(LeaseRow):
    """The handler stopped because it was asked to."""

    outcome: Literal["Cancelled"] = "Cancelled"
    cause: CutText | None = None


class Unroutable(LeaseRow):
    """The worker has no handler for the job, or its payload no longer decodes."""

    outcome: Literal["Unroutable"] = "Unroutable"
    reason: CutText


class ReturnedOutcome(LeaseRow):
    """The worker shuts down and gives the job back."""

    outcome: Literal["Returned"] = "Returned"


Outcome: TypeAlias = Success | Failure | CancelledOutcome | Unroutable | ReturnedOutcome


class Report(CommandFields):
    """Outcomes of attempts. One row never affects another."""

    type: Literal["report"] = "report"
    worker_id: WorkerIdField
    outcomes: Annotated[list[Annotated[Outcome, Field(discriminator="outcome")]], FailFast()]


class Cancel(CommandFields):
    """Cancel a job that has not ended."""

    type: Literal["cancel"] = "cancel"
    job_id: KnownJobId


class Requeue(CommandFields):
    """Start a dead-lettered or quarantined job again."""

    type: Literal["requeue"] = "requeue"
    job_id: KnownJobId


class PauseQueue(CommandFields):
    """Grant nothing from a queue from now on."""

    type: Literal["pause_queue"] = "pause_queue"
    queue: QueueField


class ResumeQueue(CommandFields):
    """Grant work from a queue again."""

    type: Literal["resume_queue"] = "resume_queue"
    queue: QueueField


class SetConcurrencyLimit(CommandFields):
    """Bound how many jobs of a queue are leased at once; null for no bound."""

    NULL_SPEAKS = frozenset({"limit"})

    type: Literal["set_concurrency_limit"] = "set_concurrency_limit"
    queue: QueueField
    limit: Annotated[StrictInt, Field(ge=1, le=bounds.MAX_CONCURRENCY_LIMIT), OF_ANY_LENGTH] | None


class PutSchedule(CommandFields):
    """Define a schedule, anew or for the first time: it ticks from now on."""

    type: Literal["put_schedule"] = "put_schedule"
    schedule_id: ScheduleIdField
    cron: Annotated[
        str,
        text_of(),
        AfterValidator(readable_cron),
        Field(
            description="5 fields, or 6 with leading seconds, at most "
            f"{bounds.MAX_CRON_CHARS} characters; it must fire at some time."
        ),
    ]
    time_zone: Annotated[
        str,
        text_of(),
        AfterValidator(known_zone),
        Field(description="The key of a zone in the IANA database, such as Europe/Berlin."),
    ] = "UTC"
    wire_name: Annotated[str, text_of(bounds.MAX_WIRE_NAME_CHARS, 1)]
    payload: Annotated[
        JsonField,
        AfterValidator(within_bounds),
        Field(description=f"At most {bounds.MAX_PAYLOAD_BYTES} bytes of compact JSON."),
    ] = NULL
    tags: TagsField = ()
    retry: Retry | None = None
    catch_up: CatchUp = CatchUp.SKIP
    no_overlap: StrictBool = False

    @property
    def retry_policy(self) -> RetryPolicy:
        """The policy as given, or the default one."""
        return DEFAULT_RETRY if self.retry is None else self.retry.policy


class RemoveSchedule(CommandFields):
    """Let a schedule tick no more; its jobs stay."""

    type: Literal["remove_schedule"] = "remove_schedule"
    schedule_id: ScheduleIdField


class TriggerSchedule(CommandFields):
    """Mint an instance of a schedule now, whatever its ticks."""

    type: Literal["trigger_schedule"] = "trigger_schedule"
    schedule_id: ScheduleIdField


Command: TypeAlias = (
    Enqueue
    | Claim
    | Heartbeat
    | Report
    | Cancel
    | Requeue
    | PauseQueue
    | ResumeQueue
    | SetConcurrencyLimit
    | PutSchedule
    | RemoveSchedule
    | TriggerSchedule
)

COMMAND_CLASSES: tuple[type[Command], ...] = (
    Enqueue,
    Claim,
    Heartbeat,
    Report,
    Cancel,
    Requeue,
    PauseQueue,
    ResumeQueue,
    SetConcurrencyLimit,
    PutSchedule,
    RemoveSchedule,
    TriggerSchedule,
)
COMMANDS_BY_TYPE: Final[dict[str, type[Command]]] = {
    str(cls.model_fields["type"].default): cls for cls in COMMAND_CLASSES
}
