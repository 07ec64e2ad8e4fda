-- Every statement that the engine runs about a job of queuey.
-- Generated from spec/queuey (sha256:1b3f6742c989844c). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. `:now` is the moment in microseconds since the epoch; names in capitals are
-- variables of the environment. `:record_…` is a field of the record, and `:given_…` is what an edge takes.
-- `:owner` and `:fence` are compared where they are given. Each runs in a transaction of the one process that
-- owns the file. Indexes are named where the planner, which knows nothing of how many there are in each state,
-- would choose another.

-- create
INSERT INTO jobs (job_id, binary_addr, input_addr, idempotency_key, created_at, updated_at)
VALUES (:record_job_id, :record_binary_addr, :record_input_addr, :record_idempotency_key, :now / 1000, :now / 1000)
ON CONFLICT DO NOTHING
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- find_unique
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs WHERE idempotency_key = :record_idempotency_key;

-- get
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs WHERE job_id = :key;

-- acquire
-- A runner takes the job. (spec/queuey/lifecycle.yaml: job.claim)
UPDATE jobs
SET
    status = 'active',
    runner_id = :owner,
    run_attempts = run_attempts + 1,
    updated_at = :now / 1000
WHERE number = (
    SELECT number FROM jobs INDEXED BY jobs_acquirable
    WHERE status = 'pending' ORDER BY created_at, number LIMIT 1
)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- move_claim
-- A runner takes the job. (spec/queuey/lifecycle.yaml: job.claim)
UPDATE jobs
SET
    status = 'active',
    runner_id = :owner,
    run_attempts = run_attempts + 1,
    updated_at = :now / 1000
WHERE job_id = :key AND status = 'pending'
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- move_abandon
-- The runner was not heard of for too long, or cannot run the job where it is. (spec/queuey/lifecycle.yaml: job.abandon)
UPDATE jobs
SET
    status = 'pending',
    runner_id = NULL,
    run_attempts = run_attempts + 1,
    updated_at = :now / 1000
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
    AND NOT (:final OR run_attempts - releases >= :MAX_ATTEMPTS)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- due_abandon
-- Which of them are due, the longest overdue first.
SELECT job_id FROM jobs INDEXED BY jobs_abandon
WHERE status = 'active' AND updated_at < :now / 1000 - CAST(:ABANDONED_AGE * 1000 AS INTEGER)
ORDER BY updated_at LIMIT :most;

-- is_due_abandon
SELECT 1 FROM jobs WHERE job_id = :key AND status = 'active' AND updated_at < :now / 1000 - CAST(:ABANDONED_AGE * 1000 AS INTEGER);

-- move_release
-- The runner is stopped and gives the job back undone. That is no failure, so its taking does not count either. (spec/queuey/lifecycle.yaml: job.release)
UPDATE jobs
SET
    status = 'pending',
    runner_id = NULL,
    releases = releases + 1,
    updated_at = :now / 1000
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- move_complete
-- The runner says that the binary ran to its end. (spec/queuey/lifecycle.yaml: job.complete)
UPDATE jobs
SET
    status = 'completed',
    updated_at = :now / 1000,
    completed_at = :now / 1000,
    output_addr = :given_output_addr,
    stderr_addr = :given_stderr_addr,
    exit_code = :given_exit_code,
    reason = :given_reason
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- move_fail
-- The runner says that the binary failed, or a client no longer wants it. (spec/queuey/lifecycle.yaml: job.fail)
UPDATE jobs
SET
    status = 'failed',
    updated_at = :now / 1000,
    completed_at = :now / 1000,
    output_addr = :given_output_addr,
    stderr_addr = :given_stderr_addr,
    exit_code = :given_exit_code,
    reason = :given_reason
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- move_write_off
-- It was abandoned as often as it may be. (spec/queuey/lifecycle.yaml: job.write_off)
UPDATE jobs
SET
    status = 'failed',
    run_attempts = run_attempts + 1,
    updated_at = :now / 1000,
    reason = coalesce(nullif(:given_reason, ''), 'ABANDONED'),
    runner_id = NULL
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
    AND (:final IS NULL OR :final OR run_attempts - releases >= :MAX_ATTEMPTS)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- renew
-- Makes a lease longer that has not ended.
UPDATE jobs
SET updated_at = :now / 1000
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- change_binary_addr
UPDATE jobs SET binary_addr = :value WHERE job_id = :key RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- change_input_addr
UPDATE jobs SET input_addr = :value WHERE job_id = :key RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases;

-- find
-- A page of the listing, newest first, that begins behind an entity.
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs
WHERE status IN (SELECT value FROM json_each(:states))
    AND (:record_binary_addr IS NULL OR binary_addr = :record_binary_addr)
    AND (:record_input_addr IS NULL OR input_addr = :record_input_addr)
    AND (:record_created_at IS NULL OR created_at = :record_created_at)
    AND (:record_updated_at IS NULL OR updated_at = :record_updated_at)
    AND (:record_completed_at IS NULL OR completed_at = :record_completed_at)
    AND (:record_run_attempts IS NULL OR run_attempts = :record_run_attempts)
    AND (:record_runner_id IS NULL OR runner_id = :record_runner_id)
    AND (:record_output_addr IS NULL OR output_addr = :record_output_addr)
    AND (:record_idempotency_key IS NULL OR idempotency_key = :record_idempotency_key)
    AND (:record_stderr_addr IS NULL OR stderr_addr = :record_stderr_addr)
    AND (:record_exit_code IS NULL OR exit_code = :record_exit_code)
    AND (:record_reason IS NULL OR reason = :record_reason)
    AND (:record_releases IS NULL OR releases = :record_releases)
    AND (:since IS NULL OR created_at >= :since)
    AND (:until IS NULL OR created_at < :until)
    AND (:after IS NULL OR (created_at, number) < (
        SELECT created_at, number FROM jobs WHERE job_id = :after
    ))
ORDER BY created_at DESC, number DESC LIMIT :size;

-- page_newest
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs
WHERE status IN (SELECT value FROM json_each(:states))
ORDER BY created_at DESC, number DESC LIMIT :size OFFSET :offset;

-- page_oldest
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases FROM jobs
WHERE status IN (SELECT value FROM json_each(:states))
ORDER BY created_at ASC, number ASC LIMIT :size OFFSET :offset;

-- census
-- How many there are in each state, and since when the oldest.
SELECT status, entities, (
    SELECT min(created_at) FROM jobs WHERE jobs.status = jobs_in_state.status
) FROM jobs_in_state;

-- remember
INSERT INTO job_changes (job_id, from_state, to_state, actor, fence, at, edge)
VALUES (:key, :source, :target, :actor, :fence, :now, :edge);

-- history
SELECT from_state, to_state, actor, fence, at, edge FROM job_changes WHERE job_id = :key ORDER BY number;
