-- Every statement that the engine runs about a job of taskqueue.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. What an edge means is no part of them: the engine reads records, works out
-- what becomes of them, and writes them, all in one transaction of the one process that owns the file.
-- Where a statement says {changes} or {filters}, the engine puts the columns that it is asked to write or to
-- compare. Indexes are named where the planner, which knows nothing of how many there are in each state, would
-- choose another.

-- get
SELECT job_id, status, job_type, created_at_ms, started_at_ms, finished_at_ms, cancel_requested, client_request_id, spec, failure_reason, cancel_reason FROM jobs WHERE job_id = :key;

-- insert
INSERT INTO jobs (job_id, status, job_type, created_at_ms, started_at_ms, finished_at_ms, cancel_requested, client_request_id, spec, failure_reason, cancel_reason)
VALUES (:record_job_id, :record_status, :record_job_type, :record_created_at_ms, :record_started_at_ms, :record_finished_at_ms, :record_cancel_requested, :record_client_request_id, :record_spec, :record_failure_reason, :record_cancel_reason);

-- write
UPDATE jobs SET {changes} WHERE job_id = :key;

-- delete
DELETE FROM jobs WHERE job_id = :key;

-- find_newest
SELECT job_id, status, job_type, created_at_ms, started_at_ms, finished_at_ms, cancel_requested, client_request_id, spec, failure_reason, cancel_reason FROM jobs WHERE {filters} ORDER BY created_at_ms DESC, job_id LIMIT :size OFFSET :offset;

-- find_oldest
SELECT job_id, status, job_type, created_at_ms, started_at_ms, finished_at_ms, cancel_requested, client_request_id, spec, failure_reason, cancel_reason FROM jobs WHERE {filters} ORDER BY created_at_ms, job_id LIMIT :size OFFSET :offset;

-- count
SELECT status, entities FROM jobs_in_state;

-- oldest
SELECT min(created_at_ms) FROM jobs WHERE status = :state;

-- deletable
SELECT job_id, status, job_type, created_at_ms, started_at_ms, finished_at_ms, cancel_requested, client_request_id, spec, failure_reason, cancel_reason FROM jobs WHERE status IN ('QUEUED');

-- remember
INSERT INTO job_history (job_id, from_state, to_state, actor, fence, at)
VALUES (:key, :source, :target, :actor, :fence, :now);

-- history
SELECT from_state AS source, to_state AS target, actor AS actor, at AS at, fence AS fence, NULL AS edge, '', '', ''
FROM job_history WHERE job_id = :key ORDER BY number;

-- forget_history
DELETE FROM job_history WHERE job_id = :key;

-- end
INSERT INTO jobs_ended (entity, until) VALUES (:key, :until)
ON CONFLICT (entity) DO UPDATE SET until = excluded.until;

-- long_ended
SELECT entity FROM jobs_ended WHERE until <= :now ORDER BY until LIMIT :most;

-- first_ended
SELECT entity FROM jobs_ended ORDER BY number LIMIT 1;

-- ended
SELECT count(*) FROM jobs_ended;

-- forget_ended
DELETE FROM jobs_ended WHERE entity = :key;
