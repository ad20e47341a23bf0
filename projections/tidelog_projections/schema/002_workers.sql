-- What each worker has done with the jobs of one partition: no two partitions ever write the same row.
-- `leases`: how many jobs it holds, kept by differences as `queue_depths` is. The counts are of what the log
-- still held when the projection was made. Workers that have long been silent are forgotten by the projector.
CREATE TABLE worker_shares (
    worker_id  text COLLATE "C" NOT NULL,
    partition  integer NOT NULL,
    first_seen timestamptz NOT NULL,
    last_seen  timestamptz NOT NULL,
    leases     integer NOT NULL,
    succeeded  bigint NOT NULL,
    failed     bigint NOT NULL,  -- attempts that it reported as failed or unroutable
    expired    bigint NOT NULL,  -- leases that it let run out
    PRIMARY KEY (worker_id, partition)
) WITH (fillfactor = 50);

-- Every worker that was granted a job. `last_seen` is its last grant, heartbeat or report that changed something.
CREATE VIEW workers AS
SELECT
    worker_id,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen,
    sum(leases)::bigint AS leases,
    sum(succeeded)::bigint AS succeeded,
    sum(failed)::bigint AS failed,
    sum(expired)::bigint AS expired
FROM worker_shares
GROUP BY worker_id;
