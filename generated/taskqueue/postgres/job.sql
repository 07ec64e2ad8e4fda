-- Every statement that the engine sends about a job of taskqueue.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- columns(job_id text, status text, job_type text, created_at_ms bigint, started_at_ms bigint, finished_at_ms bigint, cancel_requested boolean, client_request_id text, spec bytea, failure_reason text, cancel_reason text)
-- What the table has; a text is cut before it is kept.

-- begin(actor text)
-- Begins a creation that others wait for.
SELECT clock_timestamp() AS _now, set_config('app.actor', $1::text, true), pg_advisory_xact_lock(hashtext('jobs'));

-- insert(rows jsonb)
-- Adds what the engine has made of them.
INSERT INTO jobs SELECT given.* FROM jsonb_populate_recordset(NULL::jobs, $1::jsonb) AS given;

-- get(key text)
-- One job as it is now.
SELECT
    jobs.job_id,
    jobs.status,
    jobs.job_type,
    jobs.created_at_ms,
    jobs.started_at_ms,
    jobs.finished_at_ms,
    jobs.cancel_requested,
    jobs.client_request_id,
    jobs.spec,
    jobs.failure_reason,
    jobs.cancel_reason
FROM jobs
WHERE job_id = $1::text;

-- lock(keys text[])
-- Some as they are now, locked for a step that the engine takes.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        jobs.job_id,
    jobs.status,
    jobs.job_type,
    jobs.created_at_ms,
    jobs.started_at_ms,
    jobs.finished_at_ms,
    jobs.cancel_requested,
    jobs.client_request_id,
    jobs.spec,
    jobs.failure_reason,
    jobs.cancel_reason
    FROM jobs
    WHERE job_id = ANY($1::text[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY jobs.job_id
    FOR NO KEY UPDATE
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- lock_free(keys text[])
-- The same for those that no other transaction has.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        jobs.job_id,
    jobs.status,
    jobs.job_type,
    jobs.created_at_ms,
    jobs.started_at_ms,
    jobs.finished_at_ms,
    jobs.cancel_requested,
    jobs.client_request_id,
    jobs.spec,
    jobs.failure_reason,
    jobs.cancel_reason
    FROM jobs
    WHERE job_id = ANY($1::text[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY jobs.job_id
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
UPDATE jobs
SET
    status = given.status,
    started_at_ms = given.started_at_ms,
    finished_at_ms = given.finished_at_ms,
    cancel_requested = given.cancel_requested,
    failure_reason = given.failure_reason,
    cancel_reason = given.cancel_reason
FROM actor, jsonb_populate_recordset(NULL::jobs, $3::jsonb) AS given
WHERE jobs.job_id = given.job_id
RETURNING jobs.job_id;

-- update(rows jsonb)
-- Fields that no edge owns.
WITH allowed AS MATERIALIZED (
    SELECT set_config('app.actor', '', true), set_config('app.update', 'on', true)
)
UPDATE jobs
SET
    status = given.status,
    job_type = given.job_type,
    created_at_ms = given.created_at_ms,
    started_at_ms = given.started_at_ms,
    finished_at_ms = given.finished_at_ms,
    cancel_requested = given.cancel_requested,
    client_request_id = given.client_request_id,
    spec = given.spec,
    failure_reason = given.failure_reason,
    cancel_reason = given.cancel_reason
FROM allowed, jsonb_populate_recordset(NULL::jobs, $1::jsonb) AS given
WHERE jobs.job_id = given.job_id
RETURNING
    jobs.job_id,
    jobs.status,
    jobs.job_type,
    jobs.created_at_ms,
    jobs.started_at_ms,
    jobs.finished_at_ms,
    jobs.cancel_requested,
    jobs.client_request_id,
    jobs.spec,
    jobs.failure_reason,
    jobs.cancel_reason;

-- find_newest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_job_id text, record_job_type text, record_created_at_ms bigint, record_started_at_ms bigint, record_finished_at_ms bigint, record_cancel_requested boolean, record_client_request_id text, record_failure_reason text, record_cancel_reason text, size bigint, offset bigint)
-- A page of the listing, the newest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    jobs.job_id,
    jobs.status,
    jobs.job_type,
    jobs.created_at_ms,
    jobs.started_at_ms,
    jobs.finished_at_ms,
    jobs.cancel_requested,
    jobs.client_request_id,
    jobs.spec,
    jobs.failure_reason,
    jobs.cancel_reason
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM jobs AS one
    WHERE one.status = wanted.state
        AND ($2::bigint IS NULL OR one.created_at_ms >= $2::bigint)
        AND ($3::bigint IS NULL OR one.created_at_ms < $3::bigint)
        AND ($4::bigint IS NULL OR one.created_at_ms <= $4::bigint)
        AND ($4::bigint IS NULL OR one.created_at_ms <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::text IS NULL OR one.job_type = $7::text)
        AND ($8::bigint IS NULL OR one.created_at_ms = $8::bigint)
        AND ($9::bigint IS NULL OR one.started_at_ms = $9::bigint)
        AND ($10::bigint IS NULL OR one.finished_at_ms = $10::bigint)
        AND ($11::boolean IS NULL OR one.cancel_requested = $11::boolean)
        AND ($12::text IS NULL OR one.client_request_id = $12::text)
        AND ($13::text IS NULL OR one.failure_reason = $13::text)
        AND ($14::text IS NULL OR one.cancel_reason = $14::text)
    ORDER BY one.created_at_ms DESC, one.job_id
    LIMIT $15::bigint + $16::bigint
    ) AS listed
) AS jobs
ORDER BY jobs.created_at_ms DESC, jobs.job_id
OFFSET $16::bigint LIMIT $15::bigint;

-- find_oldest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_job_id text, record_job_type text, record_created_at_ms bigint, record_started_at_ms bigint, record_finished_at_ms bigint, record_cancel_requested boolean, record_client_request_id text, record_failure_reason text, record_cancel_reason text, size bigint, offset bigint)
-- A page of the listing, the oldest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    jobs.job_id,
    jobs.status,
    jobs.job_type,
    jobs.created_at_ms,
    jobs.started_at_ms,
    jobs.finished_at_ms,
    jobs.cancel_requested,
    jobs.client_request_id,
    jobs.spec,
    jobs.failure_reason,
    jobs.cancel_reason
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM jobs AS one
    WHERE one.status = wanted.state
        AND ($2::bigint IS NULL OR one.created_at_ms >= $2::bigint)
        AND ($3::bigint IS NULL OR one.created_at_ms < $3::bigint)
        AND ($4::bigint IS NULL OR one.created_at_ms >= $4::bigint)
        AND ($4::bigint IS NULL OR one.created_at_ms <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::text IS NULL OR one.job_type = $7::text)
        AND ($8::bigint IS NULL OR one.created_at_ms = $8::bigint)
        AND ($9::bigint IS NULL OR one.started_at_ms = $9::bigint)
        AND ($10::bigint IS NULL OR one.finished_at_ms = $10::bigint)
        AND ($11::boolean IS NULL OR one.cancel_requested = $11::boolean)
        AND ($12::text IS NULL OR one.client_request_id = $12::text)
        AND ($13::text IS NULL OR one.failure_reason = $13::text)
        AND ($14::text IS NULL OR one.cancel_reason = $14::text)
    ORDER BY one.created_at_ms ASC, one.job_id
    LIMIT $15::bigint + $16::bigint
    ) AS listed
) AS jobs
ORDER BY jobs.created_at_ms ASC, jobs.job_id
OFFSET $16::bigint LIMIT $15::bigint;

-- history(key text)
-- Every state change of one job, oldest first.
SELECT from_state, to_state, actor, fence, at, NULL, NULL, NULL, NULL
FROM job_history
WHERE job_id = $1::text
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT status, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(timestamptz 'epoch' + jobs.created_at_ms * interval '1 millisecond', timestamptz 'epoch'))), 0))::double precision
FROM jobs
GROUP BY status;

-- count_since(since bigint)
-- How many there are in each state, since a time.
SELECT status, count(*) FROM jobs
WHERE created_at_ms >= $1::bigint
GROUP BY status;

-- delete(keys text[], states text[], actor text)
-- Deletes some, each in the state that is expected.
SELECT removed FROM unnest($1::text[], $2::text[]) AS given (key, state),
    LATERAL jobs_remove($3::text, given.key, given.state) AS removed;

-- purge(actor text, older_than double precision, most integer)
-- Deletes those that ended long ago, and their history.
SELECT jobs_purge($1::text, $2::double precision, $3::integer);

-- forget(seconds double precision, most bigint)
-- Deletes what ended long enough ago, or before the last so many.
SELECT jobs_forget_ended($1::double precision, $2::bigint);
