"""The bounds of the contract (section 3, Bounds and Numbers). Exactly the bound is accepted."""

from __future__ import annotations

MAX_PAYLOAD_BYTES = 65_536
"""Of compact UTF-8 JSON; the same for an output."""
MAX_OUTPUT_BYTES = 65_536
MAX_WIRE_NAME_CHARS = 128
MAX_PARENTS = 16
"""Distinct parents; duplicates collapse first."""
MAX_TEXT_BYTES = 8_192
"""A failure detail is cut here on a character boundary; so are an error, a reason and a cause, so that no
record of a job can outgrow what a log takes."""
MAX_HISTORY_ROWS = 64
"""Transition rows kept per job in the projection; the log keeps all."""
MAX_SCHEDULE_SKIPS = 64
"""Skipped ticks kept per schedule in the projection; the log keeps as many as each decision lists."""
MAX_TAGS = 32
"""Tags of one command or outcome."""
MAX_JOB_TAGS = 128
"""Tags of one job over its whole life; what outcomes add beyond is dropped, so that a job stays writable."""
MAX_TAG_CHARS = 200
MAX_CLAIMED_JOBS = 500
"""A larger `max_jobs` is clamped."""
MAX_JSON_DEPTH = 512
"""Levels of nesting within one field."""
MAX_REPLY_BYTES = 512 * 1024
"""A larger grant is split (contract section 5)."""
MAX_CONCURRENCY_LIMIT = 2**53 - 1
"""The largest whole number that every reader of JSON keeps."""
MAX_ATTEMPTS = 1_000
MAX_DELAYS = 20
MAX_QUEUE_CHARS = 100
MAX_KEY_CHARS = 100
MAX_MINTED_KEY_CHARS = 255
"""Keys that schedules make."""
MAX_COMMAND_ID_CHARS = 100
MAX_ACTOR_CHARS = 200
MAX_WORKER_ID_CHARS = 200
MAX_CLIENT_ID_CHARS = 200
MAX_TRACE_CONTEXT_CHARS = 450
MAX_WORKFLOW_ID_CHARS = 200
MAX_CRON_CHARS = 500
MAX_LISTED_SKIPS = 32
"""Of the ticks that one decision skips; all of them are counted."""


def cut_text(text: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """The longest beginning of a text that fits into so many bytes of UTF-8, cut between characters."""
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    return encoded[:max_bytes].decode(errors="ignore")
