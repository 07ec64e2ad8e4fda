-- Every statement that the engine runs about a task of priority.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. What an edge means is no part of them: the engine reads records, works out
-- what becomes of them, and writes them, all in one transaction of the one process that owns the file.
-- Where a statement says {changes} or {filters}, the engine puts the columns that it is asked to write or to
-- compare. Indexes are named where the planner, which knows nothing of how many there are in each state, would
-- choose another.

-- get
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks WHERE task_id = :key;

-- insert
INSERT INTO tasks (task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes)
VALUES (:record_task_id, :record_task_type, :record_priority, :record_effective_priority, :record_parameters, :record_required_capabilities, :record_status, :record_retry_count, :record_max_retries, :record_timeout_seconds, :record_base_timeout_seconds, :record_created_at, :record_queued_at, :record_updated_at, :record_started_at, :record_completed_at, :record_available_at, :record_deadline_at, :record_assigned_worker_id, :record_attempt, :record_result, :record_error, :record_retriable, :record_dead_reason, :record_idempotency_key, :record_digest, :record_trace_id, :record_progress, :record_changes);

-- write
UPDATE tasks SET {changes} WHERE task_id = :key;

-- delete
DELETE FROM tasks WHERE task_id = :key;

-- claimable
-- A worker that can run the task takes it. Those that are free, the next one first.
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes, number FROM tasks INDEXED BY tasks_acquirable
WHERE status = 'queued' AND available_at IS NULL AND effective_priority = :part_0 AND required_capabilities = :part_1
ORDER BY queued_at, number;

-- backlog
-- How many of a rank can be claimed, and the time of the oldest.
SELECT count(*), min(queued_at) FROM tasks
WHERE status = 'queued' AND available_at IS NULL AND effective_priority = :rank;

-- needs
-- All that free ones need, one index entry for each.
WITH RECURSIVE known (need) AS (
    SELECT min(required_capabilities) FROM tasks WHERE status = 'queued' AND available_at IS NULL AND effective_priority = :rank
    UNION ALL
    SELECT (
        SELECT min(required_capabilities) FROM tasks
        WHERE status = 'queued' AND available_at IS NULL AND effective_priority = :rank AND required_capabilities > known.need
    ) FROM known WHERE known.need IS NOT NULL
)
SELECT need FROM known WHERE need IS NOT NULL;

-- held_by
SELECT task_id FROM tasks WHERE status = 'executing' AND assigned_worker_id = :owner;

-- held
SELECT task_id FROM tasks WHERE status = 'executing' ORDER BY task_id;

-- paused
SELECT value FROM tasks_paused;

-- pause
INSERT INTO tasks_paused (value) VALUES (:value) ON CONFLICT DO NOTHING;

-- resume
DELETE FROM tasks_paused WHERE value = :value;

-- due_retry
-- Which of them are due, the longest overdue first.
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks INDEXED BY tasks_retry
WHERE status = 'executing' AND deadline_at < :before
ORDER BY deadline_at, task_id LIMIT :most;

-- due_raise_low
-- Which of them are due, the longest overdue first.
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks INDEXED BY tasks_raise_low
WHERE status = 'queued' AND effective_priority = 3 AND queued_at < :before
ORDER BY queued_at, task_id LIMIT :most;

-- due_raise_medium
-- Which of them are due, the longest overdue first.
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks INDEXED BY tasks_raise_medium
WHERE status = 'queued' AND effective_priority = 2 AND queued_at < :before
ORDER BY queued_at, task_id LIMIT :most;

-- due_release
-- Which of them are due, the longest overdue first.
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks INDEXED BY tasks_release
WHERE status = 'queued' AND available_at < :before
ORDER BY available_at, task_id LIMIT :most;

-- due_delete
-- Which of them are due, the longest overdue first.
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks INDEXED BY tasks_delete
WHERE status = 'dead_letter' AND completed_at < :before
ORDER BY completed_at, task_id LIMIT :most;

-- counted
SELECT count(*) FROM tasks INDEXED BY tasks_counted WHERE status = 'queued' AND available_at IS NULL;

-- find_newest
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks WHERE {filters} ORDER BY updated_at DESC, task_id LIMIT :size OFFSET :offset;

-- find_oldest
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks WHERE {filters} ORDER BY updated_at, task_id LIMIT :size OFFSET :offset;

-- count
SELECT status, entities FROM tasks_in_state;

-- oldest
SELECT min(updated_at) FROM tasks WHERE status = :state;

-- deletable
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM tasks WHERE status IN ('dead_letter');

-- remember
INSERT INTO task_history (task_id, from_state, to_state, actor, fence, at, edge, owner, reason, trace)
VALUES (:key, :source, :target, :actor, :fence, :now, :edge, :owner, :reason, :trace);

-- history
SELECT from_state AS source, to_state AS target, actor AS actor, at AS at, fence AS fence, edge AS edge, owner, reason, trace
FROM task_history WHERE task_id = :key ORDER BY number;

-- forget_history
DELETE FROM task_history WHERE task_id = :key;

-- remember_unique
INSERT INTO tasks_unique (field, value, owner, until) VALUES (:field, :value, :key, :until)
ON CONFLICT (field, value) DO UPDATE SET owner = excluded.owner, until = excluded.until;

-- find_remembered
SELECT owner FROM tasks_unique WHERE field = :field AND value = :value AND until > :now;

-- forget_unique
DELETE FROM tasks_unique WHERE owner = :key;

-- end
INSERT INTO tasks_ended (entity, until) VALUES (:key, :until)
ON CONFLICT (entity) DO UPDATE SET until = excluded.until;

-- long_ended
SELECT entity FROM tasks_ended WHERE until <= :now ORDER BY until LIMIT :most;

-- first_ended
SELECT entity FROM tasks_ended ORDER BY number LIMIT 1;

-- ended
SELECT count(*) FROM tasks_ended;

-- forget_ended
DELETE FROM tasks_ended WHERE entity = :key;
