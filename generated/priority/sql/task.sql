-- Every statement that the engine sends about the history of a task of priority.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Whatever is written comes as the text
-- of an array for each column, with times as microseconds since the epoch.

-- write_changes(key text, sequence text, from_state text, to_state text, at text, actor text, owner text, fence text, reason text, trace text)
-- Adds changes. One that is there already is the same one: a writer died, or another was faster.
INSERT INTO task_changes (task_id, sequence, from_state, to_state, at, actor, owner, fence, reason, trace)
SELECT task_id, sequence, from_state, to_state, 'epoch'::timestamptz + at * interval '1 microsecond', actor, owner, fence, reason, trace
FROM unnest($1::text::text[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::text[], $7::text::text[], $8::text::bigint[], $9::text::text[], $10::text::text[]) AS given (task_id, sequence, from_state, to_state, at, actor, owner, fence, reason, trace)
ON CONFLICT (task_id, sequence) DO NOTHING;

-- write_ended(task_id text, task_type text, priority text, effective_priority text, parameters text, required_capabilities text, status text, retry_count text, max_retries text, timeout_seconds text, base_timeout_seconds text, created_at text, queued_at text, updated_at text, started_at text, completed_at text, available_at text, deadline_at text, assigned_worker_id text, attempt text, result text, error text, retriable text, dead_reason text, idempotency_key text, digest text, trace_id text, progress text, changes text, _at text)
-- Puts the records of those that ended, unless a later one is there.
INSERT INTO ended_tasks (task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes, _at)
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, 'epoch'::timestamptz + created_at * interval '1 microsecond', 'epoch'::timestamptz + queued_at * interval '1 microsecond', 'epoch'::timestamptz + updated_at * interval '1 microsecond', 'epoch'::timestamptz + started_at * interval '1 microsecond', 'epoch'::timestamptz + completed_at * interval '1 microsecond', 'epoch'::timestamptz + available_at * interval '1 microsecond', 'epoch'::timestamptz + deadline_at * interval '1 microsecond', assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes, 'epoch'::timestamptz + _at * interval '1 microsecond'
FROM unnest($1::text::text[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::json[], $6::text::json[], $7::text::text[], $8::text::bigint[], $9::text::bigint[], $10::text::bigint[], $11::text::bigint[], $12::text::bigint[], $13::text::bigint[], $14::text::bigint[], $15::text::bigint[], $16::text::bigint[], $17::text::bigint[], $18::text::bigint[], $19::text::text[], $20::text::bigint[], $21::text::json[], $22::text::text[], $23::text::boolean[], $24::text::text[], $25::text::text[], $26::text::text[], $27::text::text[], $28::text::json[], $29::text::bigint[], $30::text::bigint[]) AS given (task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes, _at)
ON CONFLICT (task_id) DO UPDATE SET
    task_type = excluded.task_type,
    priority = excluded.priority,
    effective_priority = excluded.effective_priority,
    parameters = excluded.parameters,
    required_capabilities = excluded.required_capabilities,
    status = excluded.status,
    retry_count = excluded.retry_count,
    max_retries = excluded.max_retries,
    timeout_seconds = excluded.timeout_seconds,
    base_timeout_seconds = excluded.base_timeout_seconds,
    created_at = excluded.created_at,
    queued_at = excluded.queued_at,
    updated_at = excluded.updated_at,
    started_at = excluded.started_at,
    completed_at = excluded.completed_at,
    available_at = excluded.available_at,
    deadline_at = excluded.deadline_at,
    assigned_worker_id = excluded.assigned_worker_id,
    attempt = excluded.attempt,
    result = excluded.result,
    error = excluded.error,
    retriable = excluded.retriable,
    dead_reason = excluded.dead_reason,
    idempotency_key = excluded.idempotency_key,
    digest = excluded.digest,
    trace_id = excluded.trace_id,
    progress = excluded.progress,
    changes = excluded.changes,
    _at = excluded._at
WHERE ended_tasks.changes < excluded.changes;

-- get(key text)
-- The record of one that ended.
SELECT task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes FROM ended_tasks WHERE task_id = $1::text;

-- history(key text)
-- Every change of one task, oldest first.
SELECT task_id, sequence, from_state, to_state, at, actor, owner, fence, reason, trace FROM task_changes WHERE task_id = $1::text ORDER BY task_changes.sequence;

-- forget(seconds double precision, most integer)
-- Takes away some of those that ended long ago and have not changed since, with all that is known of them.
SELECT ended_tasks_forget($1::double precision, $2::integer);
