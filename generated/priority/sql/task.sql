-- Every statement that the engine sends about the history of a task of priority.
-- Generated from spec/priority (sha256:e7bc1a43195de3a4). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order.

-- write_changes(task_id text[], sequence bigint[], from_state text[], to_state text[], at timestamptz[], actor text[], owner text[], fence bigint[], reason text[], trace text[])
-- Adds changes. One that is there already is the same one: a writer died, or another was faster.
INSERT INTO task_changes (task_id, sequence, from_state, to_state, at, actor, owner, fence, reason, trace)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[])
ON CONFLICT (task_id, sequence) DO NOTHING;

-- write_ended(task_id text[], task_type text[], priority text[], effective_priority text[], parameters json[], required_capabilities json[], status text[], retry_count bigint[], max_retries bigint[], timeout_seconds bigint[], base_timeout_seconds bigint[], created_at timestamptz[], queued_at timestamptz[], updated_at timestamptz[], started_at timestamptz[], completed_at timestamptz[], available_at timestamptz[], deadline_at timestamptz[], assigned_worker_id text[], attempt bigint[], result json[], error text[], retriable boolean[], dead_reason text[], idempotency_key text[], digest text[], trace_id text[], progress json[], changes bigint[], _at timestamptz[])
-- Puts the records of those that ended, unless a later one is there.
INSERT INTO ended_tasks (task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes, _at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::json[], $6::json[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19::text[], $20::bigint[], $21::json[], $22::text[], $23::boolean[], $24::text[], $25::text[], $26::text[], $27::text[], $28::json[], $29::bigint[], $30::timestamptz[])
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
SELECT task_id, sequence, from_state, to_state, at, actor, owner, fence, reason, trace FROM task_changes WHERE task_id = $1::text ORDER BY sequence;

-- forget(seconds double precision, most integer)
-- Takes away some of those that ended long ago and have not changed since, with all that is known of them.
WITH old AS (
    SELECT task_id FROM ended_tasks AS gone
    WHERE _at < clock_timestamp() - $1::double precision * interval '1 second'
    AND NOT EXISTS (
        SELECT 1 FROM task_changes AS later
        WHERE later.task_id = gone.task_id AND later.sequence > gone.changes
    )
    ORDER BY _at LIMIT $2::integer FOR UPDATE SKIP LOCKED
), changes AS (
    DELETE FROM task_changes USING old WHERE task_changes.task_id = old.task_id
)
DELETE FROM ended_tasks USING old WHERE ended_tasks.task_id = old.task_id
RETURNING 1;
