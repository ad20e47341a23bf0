-- The log in one SQLite file. The offsets of a partition are part of the key of `records`:
--     position = partition id * 2^40 + offset
-- so that a partition is one contiguous range of one B-tree, read and appended in order.

CREATE TABLE topics (
    id           INTEGER PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    cleanup      TEXT NOT NULL CHECK (cleanup IN ('delete', 'compact')),
    retention_ms INTEGER                       -- of 'delete' topics; NULL keeps everything
);

CREATE TABLE partitions (
    id           INTEGER PRIMARY KEY,
    topic_id     INTEGER NOT NULL REFERENCES topics (id),
    partition    INTEGER NOT NULL,
    start_offset INTEGER NOT NULL DEFAULT 0,   -- below it, retention has deleted everything
    next_offset  INTEGER NOT NULL DEFAULT 0,   -- of the next record to be appended
    compacted_to INTEGER NOT NULL DEFAULT 0,   -- below it, no key stands twice ('compact' topics)
    UNIQUE (topic_id, partition)
);

CREATE TABLE records (
    position    INTEGER PRIMARY KEY,
    appended_at INTEGER NOT NULL,              -- wall clock, milliseconds since 1970
    key         BLOB,
    value       BLOB,
    headers     BLOB                           -- JSON: [[name, value as Latin-1], ...]; NULL without any
);

-- The compacted part of 'compact' topics: which record is the newest of its key.
CREATE TABLE newest (
    position     INTEGER PRIMARY KEY,
    partition_id INTEGER NOT NULL,
    key          BLOB NOT NULL,
    tombstone_at INTEGER,                      -- when it was appended, if it has no value
    UNIQUE (partition_id, key)
);

CREATE INDEX newest_tombstones ON newest (tombstone_at) WHERE tombstone_at IS NOT NULL;

-- The fence: an append counts only with the newest epoch of its transactional id.
CREATE TABLE writers (
    transactional_id TEXT PRIMARY KEY,
    epoch            INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE groups (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    topic_id   INTEGER NOT NULL REFERENCES topics (id),
    generation INTEGER NOT NULL DEFAULT 0,     -- grows whenever the assignment changes
    UNIQUE (name, topic_id)
);

CREATE TABLE members (
    group_id   INTEGER NOT NULL REFERENCES groups (id),
    member_id  TEXT NOT NULL,
    expires_at INTEGER NOT NULL,               -- wall clock, milliseconds; each heartbeat moves it on
    PRIMARY KEY (group_id, member_id)
) WITHOUT ROWID;

CREATE TABLE assignments (
    group_id  INTEGER NOT NULL REFERENCES groups (id),
    partition INTEGER NOT NULL,
    member_id TEXT NOT NULL,
    PRIMARY KEY (group_id, partition)
) WITHOUT ROWID;

CREATE TABLE group_offsets (
    group_id    INTEGER NOT NULL REFERENCES groups (id),
    partition   INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    note        TEXT,                          -- for people, on why the group stands there
    PRIMARY KEY (group_id, partition)
) WITHOUT ROWID;
