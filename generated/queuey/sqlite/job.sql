-- Every statement that the engine runs about a job of queuey.
-- Generated from spec/queuey (sha256:a3f168a8a1c4ff9a). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. `:now` is the moment in microseconds since the epoch; names in capitals are
-- variables of the environment; `:owner` and `:fence` are compared where they are given. Each runs in a
-- transaction of the one process that owns the file. Indexes are named where the planner, which knows nothing of
-- how many there are in each state, would choose another.

-- create
INSERT INTO jobs (job_id, binary_addr, input_addr, idempotency_key, created_at, updated_at)
VALUES (:job_id, :binary_addr, :input_addr, :idempotency_key, :now / 1000, :now / 1000)
ON CONFLICT DO NOTHING
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- find_unique
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason FROM jobs WHERE idempotency_key = :idempotency_key;

-- get
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason FROM jobs WHERE job_id = :key;

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
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- move_claim
-- A runner takes the job. (spec/queuey/lifecycle.yaml: job.claim)
UPDATE jobs
SET
    status = 'active',
    runner_id = :owner,
    run_attempts = run_attempts + 1,
    updated_at = :now / 1000
WHERE job_id = :key AND status = 'pending'
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- move_abandon
-- The runner was not heard of for too long, or gives the job back. (spec/queuey/lifecycle.yaml: job.abandon)
UPDATE jobs
SET
    status = 'pending',
    runner_id = NULL,
    run_attempts = run_attempts + 1,
    updated_at = :now / 1000
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
    AND NOT (:final OR run_attempts >= :MAX_ATTEMPTS)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- due_abandon
-- Which of them are due, the longest overdue first.
SELECT job_id FROM jobs INDEXED BY jobs_abandon
WHERE status = 'active' AND updated_at < :now / 1000 - CAST(:ABANDONED_AGE * 1000 AS INTEGER)
ORDER BY updated_at LIMIT :most;

-- is_due_abandon
SELECT 1 FROM jobs WHERE job_id = :key AND status = 'active' AND updated_at < :now / 1000 - CAST(:ABANDONED_AGE * 1000 AS INTEGER);

-- move_complete
-- The runner says that the binary ran to its end. (spec/queuey/lifecycle.yaml: job.complete)
UPDATE jobs
SET
    status = 'completed',
    updated_at = :now / 1000,
    completed_at = :now / 1000,
    output_addr = :output_addr,
    stderr_addr = :stderr_addr,
    exit_code = :exit_code,
    reason = :reason
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- move_fail
-- The runner says that the binary failed, or a client no longer wants it. (spec/queuey/lifecycle.yaml: job.fail)
UPDATE jobs
SET
    status = 'failed',
    updated_at = :now / 1000,
    completed_at = :now / 1000,
    output_addr = :output_addr,
    stderr_addr = :stderr_addr,
    exit_code = :exit_code,
    reason = :reason
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- move_write_off
-- It was abandoned as often as it may be. (spec/queuey/lifecycle.yaml: job.write_off)
UPDATE jobs
SET
    status = 'failed',
    run_attempts = run_attempts + 1,
    updated_at = :now / 1000,
    reason = coalesce(nullif(:reason, ''), 'ABANDONED'),
    runner_id = NULL
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
    AND (:final IS NULL OR :final OR run_attempts >= :MAX_ATTEMPTS)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- renew
-- Makes a lease longer that has not ended.
UPDATE jobs
SET updated_at = :now / 1000
WHERE job_id = :key AND status = 'active'
    AND (:owner IS NULL OR runner_id = :owner)
    AND (:fence IS NULL OR run_attempts = :fence)
RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- change_binary_addr
UPDATE jobs SET binary_addr = :value WHERE job_id = :key RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- change_input_addr
UPDATE jobs SET input_addr = :value WHERE job_id = :key RETURNING job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason;

-- find
-- A page of the listing, newest first, that begins behind an entity.
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason FROM jobs
WHERE status IN (SELECT value FROM json_each(:states))
    AND (:binary_addr IS NULL OR binary_addr = :binary_addr)
    AND (:input_addr IS NULL OR input_addr = :input_addr)
    AND (:created_at IS NULL OR created_at = :created_at)
    AND (:updated_at IS NULL OR updated_at = :updated_at)
    AND (:completed_at IS NULL OR completed_at = :completed_at)
    AND (:run_attempts IS NULL OR run_attempts = :run_attempts)
    AND (:runner_id IS NULL OR runner_id = :runner_id)
    AND (:output_addr IS NULL OR output_addr = :output_addr)
    AND (:idempotency_key IS NULL OR idempotency_key = :idempotency_key)
    AND (:stderr_addr IS NULL OR stderr_addr = :stderr_addr)
    AND (:exit_code IS NULL OR exit_code = :exit_code)
    AND (:reason IS NULL OR reason = :reason)
    AND (:since IS NULL OR created_at >= :since)
    AND (:until IS NULL OR created_at < :until)
    AND (:after IS NULL OR (created_at, number) < (
        SELECT created_at, number FROM jobs WHERE job_id = :after
    ))
ORDER BY created_at DESC, number DESC LIMIT :size;

-- page_newest
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason FROM jobs
WHERE status IN (SELECT value FROM json_each(:states))
ORDER BY created_at DESC, number DESC LIMIT :size OFFSET :offset;

-- page_oldest
SELECT job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason FROM jobs
WHERE status IN (SELECT value FROM json_each(:states))
ORDER BY created_at ASC, number ASC LIMIT :size OFFSET :offset;

-- census
-- How many there are in each state, and since when the oldest.
SELECT status, entities, (
    SELECT min(created_at) FROM jobs WHERE jobs.status = jobs_in_state.status
) FROM jobs_in_state;

-- remember
INSERT INTO job_changes (job_id, from_state, to_state, actor, fence, at)
VALUES (:key, :source, :target, :actor, :fence, :now);

-- history
SELECT from_state, to_state, actor, fence, at FROM job_changes WHERE job_id = :key ORDER BY number;
