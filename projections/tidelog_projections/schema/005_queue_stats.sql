-- What happened to the jobs of a queue and wire name within a window of time. Written by `tidelog stats`, which
-- counts approximately: it is no projection of the log, and a rebuild leaves it as it is.
CREATE TABLE queue_stats (
    queue          text COLLATE "C" NOT NULL,
    wire_name      text NOT NULL,
    window_start   timestamptz NOT NULL,
    window_seconds integer NOT NULL,
    enqueued       bigint NOT NULL,
    started        bigint NOT NULL,  -- leases
    succeeded      bigint NOT NULL,
    failed         bigint NOT NULL,  -- tries: retries, dead letters and leases that ran out
    dead_lettered  bigint NOT NULL,
    quarantined    bigint NOT NULL,
    cancelled      bigint NOT NULL,
    wait_p50       double precision, -- seconds from due to lease; null when nothing was leased
    wait_p95       double precision,
    run_p50        double precision, -- seconds from lease to outcome; null when nothing ended
    run_p95        double precision,
    updated_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (queue, wire_name, window_start)
);
CREATE INDEX queue_stats_by_time ON queue_stats (window_start);
