-- Every statement that the engine sends about a worker of priority.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- columns(worker_id uuid, status text, capacity integer, capabilities text[], version text, reported_load integer, registered_at timestamptz, last_heartbeat timestamptz, updated_at timestamptz, changes bigint)
-- What the table has; a text is cut before it is kept.

-- begin(actor text)
-- Begins a creation that others wait for.
SELECT clock_timestamp() AS _now, set_config('app.actor', $1::text, true), pg_advisory_xact_lock(hashtext('workers'));

-- insert(rows jsonb)
-- Adds what the engine has made of them.
INSERT INTO workers SELECT given.* FROM jsonb_populate_recordset(NULL::workers, $1::jsonb) AS given;

-- get(key uuid)
-- One worker as it is now.
SELECT
    workers.worker_id,
    workers.status,
    workers.capacity,
    workers.capabilities,
    workers.version,
    workers.reported_load,
    workers.registered_at,
    workers.last_heartbeat,
    workers.updated_at,
    workers.changes
FROM workers
WHERE worker_id = $1::uuid;

-- lock(keys uuid[])
-- Some as they are now, locked for a step that the engine takes.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        workers.worker_id,
    workers.status,
    workers.capacity,
    workers.capabilities,
    workers.version,
    workers.reported_load,
    workers.registered_at,
    workers.last_heartbeat,
    workers.updated_at,
    workers.changes
    FROM workers
    WHERE worker_id = ANY($1::uuid[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY workers.worker_id
    FOR NO KEY UPDATE
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- lock_free(keys uuid[])
-- The same for those that no other transaction has.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        workers.worker_id,
    workers.status,
    workers.capacity,
    workers.capabilities,
    workers.version,
    workers.reported_load,
    workers.registered_at,
    workers.last_heartbeat,
    workers.updated_at,
    workers.changes
    FROM workers
    WHERE worker_id = ANY($1::uuid[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY workers.worker_id
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- write(actor text, edge text, rows jsonb)
-- What the engine has made of them.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Guards and history are told which edge is taken, and why.
    set_config('app.edge', $2::text, true)
)
UPDATE workers
SET
    status = given.status,
    reported_load = given.reported_load,
    last_heartbeat = given.last_heartbeat,
    updated_at = given.updated_at
FROM actor, jsonb_populate_recordset(NULL::workers, $3::jsonb) AS given
WHERE workers.worker_id = given.worker_id
RETURNING workers.worker_id;

-- update(rows jsonb)
-- Fields that no edge owns.
WITH allowed AS MATERIALIZED (
    SELECT set_config('app.actor', '', true), set_config('app.update', 'on', true)
)
UPDATE workers
SET
    status = given.status,
    capacity = given.capacity,
    capabilities = given.capabilities,
    version = given.version,
    reported_load = given.reported_load,
    registered_at = given.registered_at,
    last_heartbeat = given.last_heartbeat,
    updated_at = given.updated_at,
    changes = given.changes
FROM allowed, jsonb_populate_recordset(NULL::workers, $1::jsonb) AS given
WHERE workers.worker_id = given.worker_id
RETURNING
    workers.worker_id,
    workers.status,
    workers.capacity,
    workers.capabilities,
    workers.version,
    workers.reported_load,
    workers.registered_at,
    workers.last_heartbeat,
    workers.updated_at,
    workers.changes;

-- due_lose(WORKER_DEAD_SECONDS double precision, skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    workers.worker_id,
    workers.status,
    workers.capacity,
    workers.capabilities,
    workers.version,
    workers.reported_load,
    workers.registered_at,
    workers.last_heartbeat,
    workers.updated_at,
    workers.changes, clock_timestamp() AS _now
FROM workers
WHERE workers.status IN ('ACTIVE')
    AND workers.last_heartbeat < (SELECT clock_timestamp() - $1::double precision * interval '1 second')
    AND workers.worker_id <> ALL($2::uuid[])
ORDER BY workers.last_heartbeat, workers.worker_id
LIMIT $3::integer
FOR NO KEY UPDATE OF workers SKIP LOCKED;

-- due_lose_draining(WORKER_DEAD_SECONDS double precision, skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    workers.worker_id,
    workers.status,
    workers.capacity,
    workers.capabilities,
    workers.version,
    workers.reported_load,
    workers.registered_at,
    workers.last_heartbeat,
    workers.updated_at,
    workers.changes, clock_timestamp() AS _now
FROM workers
WHERE workers.status IN ('DRAINING')
    AND workers.last_heartbeat < (SELECT clock_timestamp() - $1::double precision * interval '1 second')
    AND workers.worker_id <> ALL($2::uuid[])
ORDER BY workers.last_heartbeat, workers.worker_id
LIMIT $3::integer
FOR NO KEY UPDATE OF workers SKIP LOCKED;

-- find_newest(states text[], since timestamptz, until timestamptz, after_at timestamptz, after_key uuid, record_capacity integer, record_version text, absent text[], record_reported_load integer, record_changes bigint, size bigint, offset bigint)
-- A page of the listing, the newest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    workers.worker_id,
    workers.status,
    workers.capacity,
    workers.capabilities,
    workers.version,
    workers.reported_load,
    workers.registered_at,
    workers.last_heartbeat,
    workers.updated_at,
    workers.changes
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM workers AS one
    WHERE one.status = wanted.state
        AND ($2::timestamptz IS NULL OR one.updated_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.updated_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.updated_at <= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.updated_at <> $4::timestamptz OR one.worker_id > $5::uuid)
        AND ($6::integer IS NULL OR one.capacity = $6::integer)
        AND ($7::text IS NULL OR one.version = $7::text)
        AND (one.version IS NULL OR 'version' <> ALL($8::text[]))
        AND ($9::integer IS NULL OR one.reported_load = $9::integer)
        AND (one.reported_load IS NULL OR 'reported_load' <> ALL($8::text[]))
        AND ($10::bigint IS NULL OR one.changes = $10::bigint)
    ORDER BY one.updated_at DESC, one.worker_id
    LIMIT $11::bigint + $12::bigint
    ) AS listed
) AS workers
ORDER BY workers.updated_at DESC, workers.worker_id
OFFSET $12::bigint LIMIT $11::bigint;

-- find_oldest(states text[], since timestamptz, until timestamptz, after_at timestamptz, after_key uuid, record_capacity integer, record_version text, absent text[], record_reported_load integer, record_changes bigint, size bigint, offset bigint)
-- A page of the listing, the oldest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    workers.worker_id,
    workers.status,
    workers.capacity,
    workers.capabilities,
    workers.version,
    workers.reported_load,
    workers.registered_at,
    workers.last_heartbeat,
    workers.updated_at,
    workers.changes
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM workers AS one
    WHERE one.status = wanted.state
        AND ($2::timestamptz IS NULL OR one.updated_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.updated_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.updated_at >= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.updated_at <> $4::timestamptz OR one.worker_id > $5::uuid)
        AND ($6::integer IS NULL OR one.capacity = $6::integer)
        AND ($7::text IS NULL OR one.version = $7::text)
        AND (one.version IS NULL OR 'version' <> ALL($8::text[]))
        AND ($9::integer IS NULL OR one.reported_load = $9::integer)
        AND (one.reported_load IS NULL OR 'reported_load' <> ALL($8::text[]))
        AND ($10::bigint IS NULL OR one.changes = $10::bigint)
    ORDER BY one.updated_at ASC, one.worker_id
    LIMIT $11::bigint + $12::bigint
    ) AS listed
) AS workers
ORDER BY workers.updated_at ASC, workers.worker_id
OFFSET $12::bigint LIMIT $11::bigint;

-- history(key uuid)
-- Every state change of one worker, oldest first.
SELECT from_state, to_state, actor, fence, at, NULL, NULL, NULL, NULL
FROM worker_history
WHERE worker_id = $1::uuid
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT status, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(workers.updated_at, timestamptz 'epoch'))), 0))::double precision
FROM workers
GROUP BY status;

-- count_since(since timestamptz)
-- How many there are in each state, since a time.
SELECT status, count(*) FROM workers
WHERE updated_at >= $1::timestamptz
GROUP BY status;

-- delete(keys uuid[], states text[], actor text)
-- Deletes some, each in the state that is expected.
SELECT removed FROM unnest($1::uuid[], $2::text[]) AS given (key, state),
    LATERAL workers_remove($3::text, given.key, given.state) AS removed;

-- purge(actor text, older_than double precision, most integer)
-- Deletes those that ended long ago, and their history.
SELECT workers_purge($1::text, $2::double precision, $3::integer);

-- forget(seconds double precision, most bigint)
-- Deletes what ended long enough ago, or before the last so many.
SELECT workers_forget_ended($1::double precision, $2::bigint);

-- held(key text)
-- How many leases a worker has.
SELECT count(*) FROM tasks AS held WHERE held.assigned_worker_id = $1::text::text AND held.status = 'EXECUTING';
