-- Every statement that the engine runs about a envelope of taskqueue.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. What an edge means is no part of them: the engine reads records, works out
-- what becomes of them, and writes them, all in one transaction of the one process that owns the file.
-- Where a statement says {changes} or {filters}, the engine puts the columns that it is asked to write or to
-- compare. Indexes are named where the planner, which knows nothing of how many there are in each state, would
-- choose another.

-- get
SELECT job_id, presence, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes FROM envelopes WHERE job_id = :key;

-- insert
INSERT INTO envelopes (job_id, presence, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes)
VALUES (:record_job_id, :record_presence, :record_terminal_status, :record_runtime_ms, :record_output_summary, :record_output_bytes, :record_checksum, :record_stored_at_ms, :record_stored_bytes);

-- write
UPDATE envelopes SET {changes} WHERE job_id = :key;

-- delete
DELETE FROM envelopes WHERE job_id = :key;

-- find_newest
SELECT job_id, presence, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes FROM envelopes WHERE {filters} ORDER BY stored_at_ms DESC, job_id LIMIT :size OFFSET :offset;

-- find_oldest
SELECT job_id, presence, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes FROM envelopes WHERE {filters} ORDER BY stored_at_ms, job_id LIMIT :size OFFSET :offset;

-- count
SELECT presence, entities FROM envelopes_in_state;

-- oldest
SELECT min(stored_at_ms) FROM envelopes WHERE presence = :state;

-- deletable
SELECT job_id, presence, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes FROM envelopes WHERE presence IN ('PRESENT');

-- remember
INSERT INTO envelope_history (job_id, from_state, to_state, actor, fence, at)
VALUES (:key, :source, :target, :actor, :fence, :now);

-- history
SELECT from_state AS source, to_state AS target, actor AS actor, at AS at, fence AS fence, NULL AS edge, '', '', ''
FROM envelope_history WHERE job_id = :key ORDER BY number;

-- forget_history
DELETE FROM envelope_history WHERE job_id = :key;
