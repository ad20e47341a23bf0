-- Schedules, and the ticks that were skipped.

-- One row per schedule that is there: the ScheduleRecord. `sequence` is that of the last event that changed it.
-- Ticks up to `settled_until` are minted or skipped; `next_due` is the first one after it, or null, and then
-- `error` says why.
CREATE TABLE schedules (
    schedule_id    text COLLATE "C" PRIMARY KEY,
    queue          text COLLATE "C" NOT NULL,
    cron           text NOT NULL,
    time_zone      text NOT NULL,
    wire_name      text NOT NULL,
    payload        json NOT NULL,  -- json, never jsonb: kept to the letter
    tags           json NOT NULL,
    retry          json NOT NULL,
    catch_up       text NOT NULL,
    no_overlap     boolean NOT NULL,
    put_at         timestamptz NOT NULL,
    put_by         text,
    settled_until  timestamptz NOT NULL,
    next_due       timestamptz,
    error          text,
    last_job_id    text COLLATE "C",  -- the newest instance, minted or triggered
    last_minted_at timestamptz,
    skipped_count  bigint NOT NULL,
    partition      integer NOT NULL,
    sequence       bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX schedules_by_queue ON schedules (queue, schedule_id);

-- The newest 64 ticks of each schedule for which no job was minted, and when that was decided. `sequence` is
-- that of the `schedule_ticked` event.
CREATE TABLE schedule_skips (
    schedule_id text COLLATE "C" NOT NULL,
    tick        timestamptz NOT NULL,
    at          timestamptz NOT NULL,
    partition   integer NOT NULL,
    sequence    bigint NOT NULL,
    PRIMARY KEY (schedule_id, tick)
);
