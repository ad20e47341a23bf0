-- The projection: what the log says, in rows. Everything here is derived and can be rebuilt from the log.
-- Names are not qualified: the file runs with the search path set to the schema that is being made, which is
-- `tidelog`, or the fresh one that a rebuild fills before it takes that name.
-- Ids sort by bytes (collation "C"): pages go on where they stopped, whatever the locale of the database.

-- One row per job that is not purged: the JobRecord. `sequence` is that of the last event that changed it.
-- Frequently updated, hence the free space on each page.
CREATE TABLE jobs (
    job_id            text COLLATE "C" PRIMARY KEY,
    queue             text COLLATE "C" NOT NULL,
    wire_name         text NOT NULL,
    state             text NOT NULL,
    state_ordinal     smallint NOT NULL,
    attempt           integer NOT NULL,
    returned          integer NOT NULL,
    enqueue_sequence  bigint NOT NULL,
    due_time          timestamptz NOT NULL,
    mode              text NOT NULL,
    parents_remaining integer NOT NULL,
    lease_owner       text,
    lease_expiry      timestamptz,
    cancel_requested  boolean NOT NULL,
    terminal_at       timestamptz,
    terminal_cause    text,
    payload           json NOT NULL,  -- json, never jsonb: kept to the letter
    output            json,           -- null unless the job has succeeded
    retry             json NOT NULL,
    trace_context     text,
    workflow_id       text,
    schedule_id       text COLLATE "C",
    enqueued_at       timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    partition         integer NOT NULL,
    sequence          bigint NOT NULL
) WITH (fillfactor = 80);

-- Each index ends with the order of the pages: due time, then id.
CREATE INDEX jobs_by_due ON jobs (due_time, job_id);
CREATE INDEX jobs_by_state ON jobs (state_ordinal, due_time, job_id);
CREATE INDEX jobs_by_queue ON jobs (queue, due_time, job_id);
CREATE INDEX jobs_by_wire_name ON jobs (wire_name, due_time, job_id);

-- The newest 64 steps of each job's life; the log keeps all.
CREATE TABLE job_transitions (
    job_id         text COLLATE "C" NOT NULL,
    ordinal        integer NOT NULL,
    at             timestamptz NOT NULL,
    type           text NOT NULL,
    state          text NOT NULL,
    attempt        integer NOT NULL,
    worker_id      text,
    actor          text,
    due_time       timestamptz,
    lease_expiry   timestamptz,
    error          text,
    failure_detail text,
    terminal_cause text,
    partition      integer NOT NULL,
    sequence       bigint NOT NULL,
    PRIMARY KEY (job_id, ordinal)
);

-- A label has no value. `position` is the order of first appearance.
CREATE TABLE job_tags (
    job_id   text COLLATE "C" NOT NULL,
    position integer NOT NULL,
    key      text NOT NULL,
    value    text,
    PRIMARY KEY (job_id, position)
);
CREATE INDEX job_tags_by_tag ON job_tags (key, value, job_id);

-- The parents that a job was enqueued with, in the order given.
CREATE TABLE job_dependencies (
    job_id    text COLLATE "C" NOT NULL,
    parent_id text COLLATE "C" NOT NULL,
    position  integer NOT NULL,
    PRIMARY KEY (job_id, parent_id)
);
CREATE INDEX job_dependencies_by_parent ON job_dependencies (parent_id, job_id);

-- Every queue that ever held a job or was set. `sequence` is that of its last setting, -1 when there was none.
CREATE TABLE queues (
    queue             text COLLATE "C" PRIMARY KEY,
    partition         integer NOT NULL,
    paused            boolean NOT NULL DEFAULT false,
    paused_at         timestamptz,
    paused_by         text,
    concurrency_limit integer,
    updated_at        timestamptz,
    sequence          bigint NOT NULL DEFAULT -1
);

-- How many jobs of a queue are in a state; no row when there are none. Kept by differences, in the transaction
-- that changes the jobs: reading it costs the same whatever the number of jobs.
CREATE TABLE queue_depths (
    queue text COLLATE "C" NOT NULL,
    state text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (queue, state)
) WITH (fillfactor = 50);

-- Who asked for what. `action` is the type of the command, `target` the job, queue or schedule.
CREATE TABLE audit (
    partition integer NOT NULL,
    sequence  bigint NOT NULL,
    actor     text,
    action    text NOT NULL,
    target    text COLLATE "C" NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (partition, sequence)
);
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_target ON audit (target, at);

-- How far each partition of the log has come into these tables.
CREATE TABLE projection_position (
    partition   integer PRIMARY KEY,
    sequence    bigint NOT NULL,             -- of the last event taken in
    next_offset bigint NOT NULL,             -- where in the log to read on
    unread      integer NOT NULL DEFAULT 0,  -- records without a readable sequence that followed that event
    updated_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- Records that could not be taken in, with their bytes: the rest of the log went on without them.
CREATE TABLE projection_rejects (
    partition  integer NOT NULL,
    log_offset bigint NOT NULL,
    reason     text NOT NULL,
    value      bytea,
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (partition, log_offset)
);
