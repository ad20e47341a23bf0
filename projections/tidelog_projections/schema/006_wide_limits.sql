-- A concurrency limit may be as large as a whole number that JSON keeps exactly (contract section 3).
ALTER TABLE queues ALTER COLUMN concurrency_limit TYPE bigint;
