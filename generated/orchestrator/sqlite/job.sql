-- Every statement that the engine runs about a job of orchestrator.
-- Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. What an edge means is no part of them: the engine reads records, works out
-- what becomes of them, and writes them, all in one transaction of the one process that owns the file.
-- Where a statement says {changes} or {filters}, the engine puts the columns that it is asked to write or to
-- compare. Indexes are named where the planner, which knows nothing of how many there are in each state, would
-- choose another.

-- get
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error FROM jobs WHERE job_id = :key;

-- insert
INSERT INTO jobs (job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error)
VALUES (:record_job_id, :record_job_type, :record_payload, :record_idempotency_key, :record_state, :record_retry_count, :record_attempt, :record_lease_owner, :record_lease_expiry, :record_next_attempt_at, :record_created_at, :record_updated_at, :record_result, :record_last_error);

-- write
UPDATE jobs SET {changes} WHERE job_id = :key;

-- delete
DELETE FROM jobs WHERE job_id = :key;

-- find_by_idempotency_key
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error FROM jobs WHERE idempotency_key = :value;

-- claimable
-- A worker takes the job. Those that are free, the next one first.
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error, number FROM jobs INDEXED BY jobs_acquirable
WHERE state = 'QUEUED'
ORDER BY created_at, number;

-- backlog
-- How many of a rank can be claimed, and the time of the oldest.
SELECT count(*), min(created_at) FROM jobs
WHERE state = 'QUEUED';

-- held_by
SELECT job_id FROM jobs WHERE state = 'RUNNING' AND lease_owner = :owner;

-- held
SELECT job_id FROM jobs WHERE state = 'RUNNING' ORDER BY job_id;

-- due_accept
-- Which of them are due, the longest overdue first.
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error FROM jobs INDEXED BY jobs_accept
WHERE state = 'CREATED' AND created_at < :before
ORDER BY created_at, job_id LIMIT :most;

-- due_fail
-- Which of them are due, the longest overdue first.
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error FROM jobs INDEXED BY jobs_fail
WHERE state = 'RUNNING' AND lease_expiry < :before
ORDER BY lease_expiry, job_id LIMIT :most;

-- due_requeue
-- Which of them are due, the longest overdue first.
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error FROM jobs INDEXED BY jobs_requeue
WHERE state = 'RETRY' AND next_attempt_at < :before
ORDER BY next_attempt_at, job_id LIMIT :most;

-- find_newest
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error FROM jobs WHERE {filters} ORDER BY created_at DESC, job_id LIMIT :size OFFSET :offset;

-- find_oldest
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error FROM jobs WHERE {filters} ORDER BY created_at, job_id LIMIT :size OFFSET :offset;

-- count
SELECT state, entities FROM jobs_in_state;

-- oldest
SELECT min(created_at) FROM jobs WHERE state = :state;

-- deletable
SELECT job_id, job_type, payload, idempotency_key, state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, created_at, updated_at, result, last_error FROM jobs WHERE state IN ('SUCCESS', 'DEAD');

-- remember
INSERT INTO job_history (job_id, from_state, to_state, actor, fence, at, edge)
VALUES (:key, :source, :target, :actor, :fence, :now, :edge);

-- history
SELECT from_state AS source, to_state AS target, actor AS actor, at AS at, fence AS fence, edge AS edge, '', '', ''
FROM job_history WHERE job_id = :key ORDER BY number;

-- forget_history
DELETE FROM job_history WHERE job_id = :key;
