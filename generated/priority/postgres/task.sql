-- Every statement that the engine sends about a task of priority.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- columns(task_id uuid, task_type text, priority integer, effective_priority integer, parameters jsonb, required_capabilities text[], status text, retry_count integer, max_retries integer, timeout_seconds integer, base_timeout_seconds integer, created_at timestamptz, queued_at timestamptz, updated_at timestamptz, started_at timestamptz, completed_at timestamptz, available_at timestamptz, deadline_at timestamptz, assigned_worker_id text, attempt integer, result jsonb, error text, retriable boolean, dead_reason text, idempotency_key text, digest text, trace_id text, progress jsonb, changes bigint)
-- What the table has; a text is cut before it is kept.
-- cuts error to 2000 bytes

-- begin(actor text)
-- Begins a creation that others wait for.
SELECT clock_timestamp() AS _now, set_config('app.actor', $1::text, true), pg_advisory_xact_lock(hashtext('tasks'));

-- insert(rows jsonb)
-- Adds what the engine has made of them.
INSERT INTO tasks SELECT given.* FROM jsonb_populate_recordset(NULL::tasks, $1::jsonb) AS given;

-- find_unique(fields text[], values text[])
-- The task that has what a new one must not share.
-- Each value is looked up in the index of its field.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes
FROM tasks_values AS remembered JOIN tasks ON tasks.task_id = remembered.key
WHERE (remembered.field, remembered.value) IN (SELECT * FROM unnest($1::text[], $2::text[]))
    AND remembered.until > clock_timestamp();

-- remember(fields text[], values text[], keys uuid[], seconds double precision[])
-- Remembers values that no other may have for some time.
INSERT INTO tasks_values (field, value, key, until)
SELECT given.field, given.value, given.key, clock_timestamp() + given.seconds * interval '1 second'
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::double precision[]) AS given (field, value, key, seconds)
ON CONFLICT (field, value) DO UPDATE SET key = excluded.key, until = excluded.until;

-- depth()
-- How many the index holds that has a ceiling.
SELECT count(*) FROM tasks WHERE tasks.status IN ('QUEUED') AND tasks.available_at IS NULL;

-- get(key uuid)
-- One task as it is now.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes
FROM tasks
WHERE task_id = $1::uuid;

-- lock(keys uuid[])
-- Some as they are now, locked for a step that the engine takes.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes
    FROM tasks
    WHERE task_id = ANY($1::uuid[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY tasks.task_id
    FOR NO KEY UPDATE
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- lock_free(keys uuid[])
-- The same for those that no other transaction has.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes
    FROM tasks
    WHERE task_id = ANY($1::uuid[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY tasks.task_id
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- write(actor text, edge text, reason text, trace text, rows jsonb)
-- What the engine has made of them.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Guards and history are told which edge is taken, and why.
    set_config('app.edge', $2::text, true),
    set_config('app.reason', $3::text, true), set_config('app.trace', $4::text, true)
)
UPDATE tasks
SET
    effective_priority = given.effective_priority,
    status = given.status,
    retry_count = given.retry_count,
    timeout_seconds = given.timeout_seconds,
    queued_at = given.queued_at,
    updated_at = given.updated_at,
    started_at = given.started_at,
    completed_at = given.completed_at,
    available_at = given.available_at,
    deadline_at = given.deadline_at,
    assigned_worker_id = given.assigned_worker_id,
    attempt = given.attempt,
    result = given.result,
    error = given.error,
    retriable = given.retriable,
    dead_reason = given.dead_reason,
    progress = given.progress
FROM actor, jsonb_populate_recordset(NULL::tasks, $5::jsonb) AS given
WHERE tasks.task_id = given.task_id
RETURNING tasks.task_id;

-- update(rows jsonb)
-- Fields that no edge owns.
WITH allowed AS MATERIALIZED (
    SELECT set_config('app.actor', '', true), set_config('app.update', 'on', true)
)
UPDATE tasks
SET
    task_type = given.task_type,
    priority = given.priority,
    effective_priority = given.effective_priority,
    parameters = given.parameters,
    required_capabilities = given.required_capabilities,
    status = given.status,
    retry_count = given.retry_count,
    max_retries = given.max_retries,
    timeout_seconds = given.timeout_seconds,
    base_timeout_seconds = given.base_timeout_seconds,
    created_at = given.created_at,
    queued_at = given.queued_at,
    updated_at = given.updated_at,
    started_at = given.started_at,
    completed_at = given.completed_at,
    available_at = given.available_at,
    deadline_at = given.deadline_at,
    assigned_worker_id = given.assigned_worker_id,
    attempt = given.attempt,
    result = given.result,
    error = given.error,
    retriable = given.retriable,
    dead_reason = given.dead_reason,
    idempotency_key = given.idempotency_key,
    digest = given.digest,
    trace_id = given.trace_id,
    progress = given.progress,
    changes = given.changes
FROM allowed, jsonb_populate_recordset(NULL::tasks, $1::jsonb) AS given
WHERE tasks.task_id = given.task_id
RETURNING
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes;

-- due_retry(skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes, clock_timestamp() AS _now
FROM tasks
WHERE tasks.status IN ('EXECUTING')
    AND tasks.deadline_at < (SELECT clock_timestamp())
    AND tasks.task_id <> ALL($1::uuid[])
ORDER BY tasks.deadline_at, tasks.task_id
LIMIT $2::integer
FOR NO KEY UPDATE OF tasks SKIP LOCKED;

-- due_2_retry(skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes, clock_timestamp() AS _now
FROM tasks
LEFT JOIN workers AS holder ON holder.worker_id = CASE WHEN tasks.assigned_worker_id ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' THEN tasks.assigned_worker_id::uuid END
WHERE tasks.status IN ('EXECUTING')
    AND (holder.worker_id IS NULL OR holder.status = 'DEAD')
    AND tasks.task_id <> ALL($1::uuid[])
ORDER BY tasks.task_id
LIMIT $2::integer
FOR NO KEY UPDATE OF tasks SKIP LOCKED;

-- due_raise_low(LOW_TO_MEDIUM_SECONDS double precision, skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes, clock_timestamp() AS _now
FROM tasks
WHERE tasks.status IN ('QUEUED')
    AND tasks.effective_priority = 3
    AND tasks.queued_at < (SELECT clock_timestamp() - $1::double precision * interval '1 second')
    AND tasks.task_id <> ALL($2::uuid[])
ORDER BY tasks.queued_at, tasks.task_id
LIMIT $3::integer
FOR NO KEY UPDATE OF tasks SKIP LOCKED;

-- due_raise_medium(MEDIUM_TO_HIGH_SECONDS double precision, skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes, clock_timestamp() AS _now
FROM tasks
WHERE tasks.status IN ('QUEUED')
    AND tasks.effective_priority = 2
    AND tasks.queued_at < (SELECT clock_timestamp() - $1::double precision * interval '1 second')
    AND tasks.task_id <> ALL($2::uuid[])
ORDER BY tasks.queued_at, tasks.task_id
LIMIT $3::integer
FOR NO KEY UPDATE OF tasks SKIP LOCKED;

-- due_release(skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes, clock_timestamp() AS _now
FROM tasks
WHERE tasks.status IN ('QUEUED')
    AND tasks.available_at < (SELECT clock_timestamp())
    AND tasks.task_id <> ALL($1::uuid[])
ORDER BY tasks.available_at, tasks.task_id
LIMIT $2::integer
FOR NO KEY UPDATE OF tasks SKIP LOCKED;

-- due_delete(DLQ_RETENTION_SECONDS double precision, skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes, clock_timestamp() AS _now
FROM tasks
WHERE tasks.status IN ('DEAD_LETTER')
    AND tasks.completed_at < (SELECT clock_timestamp() - $1::double precision * interval '1 second')
    AND tasks.task_id <> ALL($2::uuid[])
ORDER BY tasks.completed_at, tasks.task_id
LIMIT $3::integer
FOR NO KEY UPDATE OF tasks SKIP LOCKED;

-- choose(free bigint, offered text[], record_task_type text, record_priority integer, record_effective_priority integer, record_retry_count integer, record_max_retries integer, absent text[], record_timeout_seconds integer, record_base_timeout_seconds integer, record_assigned_worker_id text, record_attempt integer, record_error text, record_retriable boolean, record_dead_reason text, record_idempotency_key text, record_digest text, record_trace_id text, record_changes bigint)
-- The next to be claimed, locked for the engine.
WITH next1 AS MATERIALIZED (
    SELECT tasks.ctid AS place, 1 AS rank, tasks.queued_at AS age, greatest(clock_timestamp(), tasks.created_at, tasks.queued_at, tasks.updated_at, tasks.started_at, tasks.completed_at) AS moment, tasks.updated_at AS since
    FROM tasks
    WHERE tasks.status = 'QUEUED'
        AND tasks.available_at IS NULL
        AND (tasks.deadline_at IS NULL OR tasks.deadline_at < clock_timestamp())
        AND NOT EXISTS (SELECT FROM tasks_paused AS paused WHERE paused.value = tasks.effective_priority)
        AND tasks.required_capabilities <@ $2::text[]
        AND ($3::text IS NULL OR tasks.task_type = $3::text)
        AND ($4::integer IS NULL OR tasks.priority = $4::integer)
        AND ($5::integer IS NULL OR tasks.effective_priority = $5::integer)
        AND ($6::integer IS NULL OR tasks.retry_count = $6::integer)
        AND ($7::integer IS NULL OR tasks.max_retries = $7::integer)
        AND (tasks.max_retries IS NULL OR 'max_retries' <> ALL($8::text[]))
        AND ($9::integer IS NULL OR tasks.timeout_seconds = $9::integer)
        AND (tasks.timeout_seconds IS NULL OR 'timeout_seconds' <> ALL($8::text[]))
        AND ($10::integer IS NULL OR tasks.base_timeout_seconds = $10::integer)
        AND (tasks.base_timeout_seconds IS NULL OR 'base_timeout_seconds' <> ALL($8::text[]))
        AND ($11::text IS NULL OR tasks.assigned_worker_id = $11::text)
        AND (tasks.assigned_worker_id IS NULL OR 'assigned_worker_id' <> ALL($8::text[]))
        AND ($12::integer IS NULL OR tasks.attempt = $12::integer)
        AND ($13::text IS NULL OR tasks.error = $13::text)
        AND (tasks.error IS NULL OR 'error' <> ALL($8::text[]))
        AND ($14::boolean IS NULL OR tasks.retriable = $14::boolean)
        AND (tasks.retriable IS NULL OR 'retriable' <> ALL($8::text[]))
        AND ($15::text IS NULL OR tasks.dead_reason = $15::text)
        AND (tasks.dead_reason IS NULL OR 'dead_reason' <> ALL($8::text[]))
        AND ($16::text IS NULL OR tasks.idempotency_key = $16::text)
        AND (tasks.idempotency_key IS NULL OR 'idempotency_key' <> ALL($8::text[]))
        AND ($17::text IS NULL OR tasks.digest = $17::text)
        AND (tasks.digest IS NULL OR 'digest' <> ALL($8::text[]))
        AND ($18::text IS NULL OR tasks.trace_id = $18::text)
        AND ($19::bigint IS NULL OR tasks.changes = $19::bigint)
        AND tasks.effective_priority = 1
    ORDER BY tasks.queued_at, tasks.task_id
    LIMIT $1::bigint
    FOR UPDATE OF tasks SKIP LOCKED
),
next2 AS MATERIALIZED (
    SELECT tasks.ctid AS place, 2 AS rank, tasks.queued_at AS age, greatest(clock_timestamp(), tasks.created_at, tasks.queued_at, tasks.updated_at, tasks.started_at, tasks.completed_at) AS moment, tasks.updated_at AS since
    FROM tasks
    WHERE tasks.status = 'QUEUED'
        AND tasks.available_at IS NULL
        AND (tasks.deadline_at IS NULL OR tasks.deadline_at < clock_timestamp())
        AND NOT EXISTS (SELECT FROM tasks_paused AS paused WHERE paused.value = tasks.effective_priority)
        AND tasks.required_capabilities <@ $2::text[]
        AND ($3::text IS NULL OR tasks.task_type = $3::text)
        AND ($4::integer IS NULL OR tasks.priority = $4::integer)
        AND ($5::integer IS NULL OR tasks.effective_priority = $5::integer)
        AND ($6::integer IS NULL OR tasks.retry_count = $6::integer)
        AND ($7::integer IS NULL OR tasks.max_retries = $7::integer)
        AND (tasks.max_retries IS NULL OR 'max_retries' <> ALL($8::text[]))
        AND ($9::integer IS NULL OR tasks.timeout_seconds = $9::integer)
        AND (tasks.timeout_seconds IS NULL OR 'timeout_seconds' <> ALL($8::text[]))
        AND ($10::integer IS NULL OR tasks.base_timeout_seconds = $10::integer)
        AND (tasks.base_timeout_seconds IS NULL OR 'base_timeout_seconds' <> ALL($8::text[]))
        AND ($11::text IS NULL OR tasks.assigned_worker_id = $11::text)
        AND (tasks.assigned_worker_id IS NULL OR 'assigned_worker_id' <> ALL($8::text[]))
        AND ($12::integer IS NULL OR tasks.attempt = $12::integer)
        AND ($13::text IS NULL OR tasks.error = $13::text)
        AND (tasks.error IS NULL OR 'error' <> ALL($8::text[]))
        AND ($14::boolean IS NULL OR tasks.retriable = $14::boolean)
        AND (tasks.retriable IS NULL OR 'retriable' <> ALL($8::text[]))
        AND ($15::text IS NULL OR tasks.dead_reason = $15::text)
        AND (tasks.dead_reason IS NULL OR 'dead_reason' <> ALL($8::text[]))
        AND ($16::text IS NULL OR tasks.idempotency_key = $16::text)
        AND (tasks.idempotency_key IS NULL OR 'idempotency_key' <> ALL($8::text[]))
        AND ($17::text IS NULL OR tasks.digest = $17::text)
        AND (tasks.digest IS NULL OR 'digest' <> ALL($8::text[]))
        AND ($18::text IS NULL OR tasks.trace_id = $18::text)
        AND ($19::bigint IS NULL OR tasks.changes = $19::bigint)
        AND tasks.effective_priority = 2
    ORDER BY tasks.queued_at, tasks.task_id
    LIMIT $1::bigint - (SELECT count(*) FROM next1)
    FOR UPDATE OF tasks SKIP LOCKED
),
next3 AS MATERIALIZED (
    SELECT tasks.ctid AS place, 3 AS rank, tasks.queued_at AS age, greatest(clock_timestamp(), tasks.created_at, tasks.queued_at, tasks.updated_at, tasks.started_at, tasks.completed_at) AS moment, tasks.updated_at AS since
    FROM tasks
    WHERE tasks.status = 'QUEUED'
        AND tasks.available_at IS NULL
        AND (tasks.deadline_at IS NULL OR tasks.deadline_at < clock_timestamp())
        AND NOT EXISTS (SELECT FROM tasks_paused AS paused WHERE paused.value = tasks.effective_priority)
        AND tasks.required_capabilities <@ $2::text[]
        AND ($3::text IS NULL OR tasks.task_type = $3::text)
        AND ($4::integer IS NULL OR tasks.priority = $4::integer)
        AND ($5::integer IS NULL OR tasks.effective_priority = $5::integer)
        AND ($6::integer IS NULL OR tasks.retry_count = $6::integer)
        AND ($7::integer IS NULL OR tasks.max_retries = $7::integer)
        AND (tasks.max_retries IS NULL OR 'max_retries' <> ALL($8::text[]))
        AND ($9::integer IS NULL OR tasks.timeout_seconds = $9::integer)
        AND (tasks.timeout_seconds IS NULL OR 'timeout_seconds' <> ALL($8::text[]))
        AND ($10::integer IS NULL OR tasks.base_timeout_seconds = $10::integer)
        AND (tasks.base_timeout_seconds IS NULL OR 'base_timeout_seconds' <> ALL($8::text[]))
        AND ($11::text IS NULL OR tasks.assigned_worker_id = $11::text)
        AND (tasks.assigned_worker_id IS NULL OR 'assigned_worker_id' <> ALL($8::text[]))
        AND ($12::integer IS NULL OR tasks.attempt = $12::integer)
        AND ($13::text IS NULL OR tasks.error = $13::text)
        AND (tasks.error IS NULL OR 'error' <> ALL($8::text[]))
        AND ($14::boolean IS NULL OR tasks.retriable = $14::boolean)
        AND (tasks.retriable IS NULL OR 'retriable' <> ALL($8::text[]))
        AND ($15::text IS NULL OR tasks.dead_reason = $15::text)
        AND (tasks.dead_reason IS NULL OR 'dead_reason' <> ALL($8::text[]))
        AND ($16::text IS NULL OR tasks.idempotency_key = $16::text)
        AND (tasks.idempotency_key IS NULL OR 'idempotency_key' <> ALL($8::text[]))
        AND ($17::text IS NULL OR tasks.digest = $17::text)
        AND (tasks.digest IS NULL OR 'digest' <> ALL($8::text[]))
        AND ($18::text IS NULL OR tasks.trace_id = $18::text)
        AND ($19::bigint IS NULL OR tasks.changes = $19::bigint)
        AND tasks.effective_priority = 3
    ORDER BY tasks.queued_at, tasks.task_id
    LIMIT $1::bigint - (SELECT count(*) FROM next1) - (SELECT count(*) FROM next2)
    FOR UPDATE OF tasks SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1 UNION ALL
    SELECT * FROM next2 UNION ALL
    SELECT * FROM next3
)
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes, clock_timestamp() AS _now,
    next.rank AS _rank, next.age AS _age, extract(epoch FROM next.moment - next.since)::double precision AS _waited
FROM next JOIN tasks ON tasks.ctid = next.place;

-- backlog()
-- How many can be claimed, and the age of the oldest.
SELECT 0 AS rank, count(*) AS entities, greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(tasks.queued_at, timestamptz 'epoch'))), 0))::double precision AS oldest
FROM tasks
WHERE tasks.status = 'QUEUED' AND tasks.available_at IS NULL AND (tasks.deadline_at IS NULL OR tasks.deadline_at < clock_timestamp()) AND tasks.effective_priority = 1
UNION ALL
SELECT 1 AS rank, count(*) AS entities, greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(tasks.queued_at, timestamptz 'epoch'))), 0))::double precision AS oldest
FROM tasks
WHERE tasks.status = 'QUEUED' AND tasks.available_at IS NULL AND (tasks.deadline_at IS NULL OR tasks.deadline_at < clock_timestamp()) AND tasks.effective_priority = 2
UNION ALL
SELECT 2 AS rank, count(*) AS entities, greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(tasks.queued_at, timestamptz 'epoch'))), 0))::double precision AS oldest
FROM tasks
WHERE tasks.status = 'QUEUED' AND tasks.available_at IS NULL AND (tasks.deadline_at IS NULL OR tasks.deadline_at < clock_timestamp()) AND tasks.effective_priority = 3;

-- renew(actor text, keys uuid[], owners text[], fences bigint[], seconds double precision)
-- Lets leases begin anew that have not ended.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'EXECUTING' AS state
    FROM unnest($2::uuid[], $3::text[], $4::bigint[]) AS given (key, owner, fence)
),
held AS MATERIALIZED (
    SELECT tasks.ctid AS place, greatest(clock_timestamp(), tasks.created_at, tasks.queued_at, tasks.updated_at, tasks.started_at, tasks.completed_at) AS moment
    FROM given JOIN tasks ON tasks.task_id = given.key
    WHERE (tasks.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR tasks.assigned_worker_id = given.owner)
        AND (given.fence = 0 OR tasks.attempt = given.fence)
        AND (given.owner = '' OR (tasks.deadline_at <= clock_timestamp()) IS NOT TRUE)
    FOR NO KEY UPDATE OF tasks SKIP LOCKED
)
UPDATE tasks
SET
    deadline_at = clock_timestamp() + coalesce($5::double precision, coalesce(tasks.timeout_seconds, 0)) * interval '1 second'
FROM held, actor
WHERE tasks.ctid = held.place
RETURNING
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes;

-- holds(keys uuid[])
-- Some as they are, to explain what was not written.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes, clock_timestamp() AS _now
FROM tasks
WHERE task_id = ANY($1::uuid[]);

-- holder(owner text)
-- The holder of a lease, and how many it has.
SELECT
    CASE holder.status WHEN 'ACTIVE' THEN 1 WHEN 'DRAINING' THEN 2 WHEN 'DEAD' THEN 3 END AS state,
    holder.capacity AS capacity, holder.capabilities AS offers,
    (SELECT count(*) FROM tasks WHERE tasks.assigned_worker_id = $1::text AND tasks.status = 'EXECUTING') AS held
FROM workers AS holder
WHERE holder.worker_id = CASE WHEN $1::text ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' THEN $1::text::uuid END
-- Two claims of one holder come one after the other, so that it never has more than it has room for.
FOR UPDATE OF holder;

-- pause(value bigint)
-- Stops claims of a value.
INSERT INTO tasks_paused (value) VALUES ($1::bigint) ON CONFLICT DO NOTHING;

-- resume(value bigint)
-- Lets claims of a value go on.
WITH gone AS (DELETE FROM tasks_paused WHERE value = $1::bigint)
SELECT pg_notify('tasks', '');

-- paused()
-- The values that are paused.
SELECT value FROM tasks_paused;

-- find_newest(states text[], since timestamptz, until timestamptz, after_at timestamptz, after_key uuid, record_task_type text, record_priority integer, record_effective_priority integer, record_retry_count integer, record_max_retries integer, absent text[], record_timeout_seconds integer, record_base_timeout_seconds integer, record_assigned_worker_id text, record_attempt integer, record_error text, record_retriable boolean, record_dead_reason text, record_idempotency_key text, record_digest text, record_trace_id text, record_changes bigint, size bigint, offset bigint)
-- A page of the listing, the newest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM tasks AS one
    WHERE one.status = wanted.state
        AND ($2::timestamptz IS NULL OR one.updated_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.updated_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.updated_at <= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.updated_at <> $4::timestamptz OR one.task_id > $5::uuid)
        AND ($6::text IS NULL OR one.task_type = $6::text)
        AND ($7::integer IS NULL OR one.priority = $7::integer)
        AND ($8::integer IS NULL OR one.effective_priority = $8::integer)
        AND ($9::integer IS NULL OR one.retry_count = $9::integer)
        AND ($10::integer IS NULL OR one.max_retries = $10::integer)
        AND (one.max_retries IS NULL OR 'max_retries' <> ALL($11::text[]))
        AND ($12::integer IS NULL OR one.timeout_seconds = $12::integer)
        AND (one.timeout_seconds IS NULL OR 'timeout_seconds' <> ALL($11::text[]))
        AND ($13::integer IS NULL OR one.base_timeout_seconds = $13::integer)
        AND (one.base_timeout_seconds IS NULL OR 'base_timeout_seconds' <> ALL($11::text[]))
        AND ($14::text IS NULL OR one.assigned_worker_id = $14::text)
        AND (one.assigned_worker_id IS NULL OR 'assigned_worker_id' <> ALL($11::text[]))
        AND ($15::integer IS NULL OR one.attempt = $15::integer)
        AND ($16::text IS NULL OR one.error = $16::text)
        AND (one.error IS NULL OR 'error' <> ALL($11::text[]))
        AND ($17::boolean IS NULL OR one.retriable = $17::boolean)
        AND (one.retriable IS NULL OR 'retriable' <> ALL($11::text[]))
        AND ($18::text IS NULL OR one.dead_reason = $18::text)
        AND (one.dead_reason IS NULL OR 'dead_reason' <> ALL($11::text[]))
        AND ($19::text IS NULL OR one.idempotency_key = $19::text)
        AND (one.idempotency_key IS NULL OR 'idempotency_key' <> ALL($11::text[]))
        AND ($20::text IS NULL OR one.digest = $20::text)
        AND (one.digest IS NULL OR 'digest' <> ALL($11::text[]))
        AND ($21::text IS NULL OR one.trace_id = $21::text)
        AND ($22::bigint IS NULL OR one.changes = $22::bigint)
    ORDER BY one.updated_at DESC, one.task_id
    LIMIT $23::bigint + $24::bigint
    ) AS listed
) AS tasks
ORDER BY tasks.updated_at DESC, tasks.task_id
OFFSET $24::bigint LIMIT $23::bigint;

-- find_oldest(states text[], since timestamptz, until timestamptz, after_at timestamptz, after_key uuid, record_task_type text, record_priority integer, record_effective_priority integer, record_retry_count integer, record_max_retries integer, absent text[], record_timeout_seconds integer, record_base_timeout_seconds integer, record_assigned_worker_id text, record_attempt integer, record_error text, record_retriable boolean, record_dead_reason text, record_idempotency_key text, record_digest text, record_trace_id text, record_changes bigint, size bigint, offset bigint)
-- A page of the listing, the oldest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    tasks.task_id,
    tasks.task_type,
    tasks.priority,
    tasks.effective_priority,
    tasks.parameters,
    tasks.required_capabilities,
    tasks.status,
    tasks.retry_count,
    tasks.max_retries,
    tasks.timeout_seconds,
    tasks.base_timeout_seconds,
    tasks.created_at,
    tasks.queued_at,
    tasks.updated_at,
    tasks.started_at,
    tasks.completed_at,
    tasks.available_at,
    tasks.deadline_at,
    tasks.assigned_worker_id,
    tasks.attempt,
    tasks.result,
    tasks.error,
    tasks.retriable,
    tasks.dead_reason,
    tasks.idempotency_key,
    tasks.digest,
    tasks.trace_id,
    tasks.progress,
    tasks.changes
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM tasks AS one
    WHERE one.status = wanted.state
        AND ($2::timestamptz IS NULL OR one.updated_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.updated_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.updated_at >= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.updated_at <> $4::timestamptz OR one.task_id > $5::uuid)
        AND ($6::text IS NULL OR one.task_type = $6::text)
        AND ($7::integer IS NULL OR one.priority = $7::integer)
        AND ($8::integer IS NULL OR one.effective_priority = $8::integer)
        AND ($9::integer IS NULL OR one.retry_count = $9::integer)
        AND ($10::integer IS NULL OR one.max_retries = $10::integer)
        AND (one.max_retries IS NULL OR 'max_retries' <> ALL($11::text[]))
        AND ($12::integer IS NULL OR one.timeout_seconds = $12::integer)
        AND (one.timeout_seconds IS NULL OR 'timeout_seconds' <> ALL($11::text[]))
        AND ($13::integer IS NULL OR one.base_timeout_seconds = $13::integer)
        AND (one.base_timeout_seconds IS NULL OR 'base_timeout_seconds' <> ALL($11::text[]))
        AND ($14::text IS NULL OR one.assigned_worker_id = $14::text)
        AND (one.assigned_worker_id IS NULL OR 'assigned_worker_id' <> ALL($11::text[]))
        AND ($15::integer IS NULL OR one.attempt = $15::integer)
        AND ($16::text IS NULL OR one.error = $16::text)
        AND (one.error IS NULL OR 'error' <> ALL($11::text[]))
        AND ($17::boolean IS NULL OR one.retriable = $17::boolean)
        AND (one.retriable IS NULL OR 'retriable' <> ALL($11::text[]))
        AND ($18::text IS NULL OR one.dead_reason = $18::text)
        AND (one.dead_reason IS NULL OR 'dead_reason' <> ALL($11::text[]))
        AND ($19::text IS NULL OR one.idempotency_key = $19::text)
        AND (one.idempotency_key IS NULL OR 'idempotency_key' <> ALL($11::text[]))
        AND ($20::text IS NULL OR one.digest = $20::text)
        AND (one.digest IS NULL OR 'digest' <> ALL($11::text[]))
        AND ($21::text IS NULL OR one.trace_id = $21::text)
        AND ($22::bigint IS NULL OR one.changes = $22::bigint)
    ORDER BY one.updated_at ASC, one.task_id
    LIMIT $23::bigint + $24::bigint
    ) AS listed
) AS tasks
ORDER BY tasks.updated_at ASC, tasks.task_id
OFFSET $24::bigint LIMIT $23::bigint;

-- history(key uuid)
-- Every state change of one task, oldest first.
SELECT from_state, to_state, actor, fence, at, edge, owner, reason, trace
FROM task_history
WHERE task_id = $1::uuid
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT status, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(tasks.updated_at, timestamptz 'epoch'))), 0))::double precision
FROM tasks
GROUP BY status;

-- count_since(since timestamptz)
-- How many there are in each state, since a time.
SELECT status, count(*) FROM tasks
WHERE updated_at >= $1::timestamptz
GROUP BY status;

-- delete(keys uuid[], states text[], actor text)
-- Deletes some, each in the state that is expected.
SELECT removed FROM unnest($1::uuid[], $2::text[]) AS given (key, state),
    LATERAL tasks_remove($3::text, given.key, given.state) AS removed;

-- purge(actor text, older_than double precision, most integer)
-- Deletes those that ended long ago, and their history.
SELECT tasks_purge($1::text, $2::double precision, $3::integer);

-- forget(seconds double precision, most bigint)
-- Deletes what ended long enough ago, or before the last so many.
SELECT tasks_forget_ended($1::double precision, $2::bigint);
