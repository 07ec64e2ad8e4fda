-- Every statement that the engine runs about a job of queuey.
-- Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. What an edge means is no part of them: the engine reads records, works out
-- what becomes of them, and writes them, all in one transaction of the one process that owns the file.
-- Where a statement says {changes} or {filters}, the engine puts the columns that it is asked to write or to
-- compare. Indexes are named where the planner, which knows nothing of how many there are in each state, would
-- choose another.

-- get
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs WHERE job_id = :key;

-- insert
INSERT INTO jobs (job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases)
VALUES (:record_job_id, :record_binary_addr, :record_input_addr, :record_created_at, :record_updated_at, :record_completed_at, :record_status, :record_run_attempts, :record_runner_id, :record_output_addr, :record_idempotency_key, :record_stderr_addr, :record_exit_code, :record_reason, :record_releases);

-- write
UPDATE jobs SET {changes} WHERE job_id = :key;

-- delete
DELETE FROM jobs WHERE job_id = :key;

-- find_by_idempotency_key
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs WHERE idempotency_key = :value;

-- claimable
-- A runner takes the job. Those that are free, the next one first.
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases, number FROM jobs INDEXED BY jobs_acquirable
WHERE status = 'pending'
ORDER BY created_at, number;

-- backlog
-- How many of a rank can be claimed, and the time of the oldest.
SELECT count(*), min(created_at) FROM jobs
WHERE status = 'pending';

-- held_by
SELECT job_id FROM jobs WHERE status = 'active' AND runner_id = :owner;

-- held
SELECT job_id FROM jobs WHERE status = 'active' ORDER BY job_id;

-- due_abandon
-- Which of them are due, the longest overdue first.
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs INDEXED BY jobs_abandon
WHERE status = 'active' AND updated_at < :before
ORDER BY updated_at, job_id LIMIT :most;

-- find_newest
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs WHERE {filters} ORDER BY created_at DESC, job_id LIMIT :size OFFSET :offset;

-- find_oldest
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs WHERE {filters} ORDER BY created_at, job_id LIMIT :size OFFSET :offset;

-- count
SELECT status, entities FROM jobs_in_state;

-- oldest
SELECT min(created_at) FROM jobs WHERE status = :state;

-- remember
INSERT INTO job_changes (job_id, from_state, to_state, actor, fence, at, edge)
VALUES (:key, :source, :target, :actor, :fence, :now, :edge);

-- history
SELECT from_state AS source, to_state AS target, actor AS actor, at AS at, fence AS fence, edge AS edge, '', '', ''
FROM job_changes WHERE job_id = :key ORDER BY number;

-- forget_history
DELETE FROM job_changes WHERE job_id = :key;
