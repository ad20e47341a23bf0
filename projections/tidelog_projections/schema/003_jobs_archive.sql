-- Jobs that were purged, as they were then, where TIDELOG_ARCHIVE is on. An id may be born and purged again:
-- each of its lives has a row. Nothing of Tidelog ever deletes from here, and a rebuild takes the rows along.
CREATE TABLE jobs_archive (
    LIKE jobs,
    tags      jsonb NOT NULL,   -- as in the JobRecord: labels, and objects of one pair
    parents   text[] NOT NULL,  -- in the order given at the enqueue
    purged_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, enqueue_sequence)
);
CREATE INDEX jobs_archive_by_purge ON jobs_archive (purged_at, job_id, enqueue_sequence);
CREATE INDEX jobs_archive_by_queue ON jobs_archive (queue, purged_at, job_id, enqueue_sequence);
