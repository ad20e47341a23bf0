-- By which a log is known again: one that has another record at that offset is not the one that the rows come
-- from. Null in what an earlier release has written, until the next record is taken in.
ALTER TABLE projection_position ADD COLUMN last_offset bigint; -- of the newest record that was read
ALTER TABLE projection_position ADD COLUMN last_digest bytea; -- of its bytes
