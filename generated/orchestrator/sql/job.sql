-- Every statement that the engine sends about a job of orchestrator.
-- Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- columns(job_id uuid, job_type text, payload jsonb, idempotency_key text, state text, retry_count integer, attempt integer, lease_owner text, lease_expiry timestamptz, next_attempt_at timestamptz, created_at timestamptz, updated_at timestamptz, result jsonb, last_error text)
-- What the table has; a text is cut before it is kept.
-- cuts last_error to 2000 bytes

-- create(actor text, then boolean, record_job_id uuid[], record_job_type text[], record_payload jsonb[], record_idempotency_key text[])
-- Adds a job unless one has the same idempotency_key.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    set_config('app.at_once', CASE WHEN $2::boolean THEN $1::text ELSE '' END, true)
)
INSERT INTO jobs (job_id, job_type, payload, idempotency_key, state)
SELECT given.job_id, given.job_type, given.payload, given.idempotency_key, CASE WHEN $2::boolean THEN 'QUEUED' ELSE 'CREATED' END
FROM actor, unnest($3::uuid[], $4::text[], $5::jsonb[], $6::text[])
    AS given (job_id, job_type, payload, idempotency_key)
-- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
ORDER BY given.idempotency_key
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error;

-- create_shared(actor text, then boolean, record_job_id uuid[], record_job_type text[], record_payload jsonb[], record_idempotency_key text[])
-- The same for several who ask at once.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    set_config('app.at_once', CASE WHEN $2::boolean THEN $1::text ELSE '' END, true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
)
INSERT INTO jobs (job_id, job_type, payload, idempotency_key, state)
SELECT given.job_id, given.job_type, given.payload, given.idempotency_key, CASE WHEN $2::boolean THEN 'QUEUED' ELSE 'CREATED' END
FROM actor, unnest($3::uuid[], $4::text[], $5::jsonb[], $6::text[])
    AS given (job_id, job_type, payload, idempotency_key)
-- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
ORDER BY given.idempotency_key
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error;

-- create_accept(actor text, record_job_id uuid[], record_job_type text[], record_payload jsonb[], record_idempotency_key text[])
-- Adds each unless it is known, and takes accept with it: their keys, or NULL if all are new.
SELECT jobs_create_accept($1::text, $2::uuid[], $3::text[], $4::jsonb[], $5::text[]);

-- begin(actor text)
-- Begins a creation that others wait for.
SELECT clock_timestamp() AS _now, set_config('app.actor', $1::text, true), pg_advisory_xact_lock(hashtext('jobs'));

-- insert(rows jsonb)
-- Adds what the engine has made of them.
INSERT INTO jobs SELECT given.* FROM jsonb_populate_recordset(NULL::jobs, $1::jsonb) AS given;

-- find_unique(record_idempotency_key text[])
-- The job that has what a new one must not share.
-- Each value is looked up in the index of its field.
SELECT
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error
FROM jobs
WHERE jobs.idempotency_key = ANY($1::text[]);

-- get(key uuid)
-- One job as it is now.
SELECT
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error
FROM jobs
WHERE job_id = $1::uuid;

-- lock(keys uuid[])
-- Some as they are now, locked for a step that the engine takes.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error
    FROM jobs
    WHERE job_id = ANY($1::uuid[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY jobs.job_id
    FOR NO KEY UPDATE
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- lock_free(keys uuid[])
-- The same for those that no other transaction has.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error
    FROM jobs
    WHERE job_id = ANY($1::uuid[])
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
    state = given.state,
    retry_count = given.retry_count,
    attempt = given.attempt,
    lease_owner = given.lease_owner,
    lease_expiry = given.lease_expiry,
    next_attempt_at = given.next_attempt_at,
    updated_at = given.updated_at,
    result = given.result,
    last_error = given.last_error
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
    job_type = given.job_type,
    payload = given.payload,
    idempotency_key = given.idempotency_key,
    state = given.state,
    retry_count = given.retry_count,
    attempt = given.attempt,
    lease_owner = given.lease_owner,
    lease_expiry = given.lease_expiry,
    next_attempt_at = given.next_attempt_at,
    created_at = given.created_at,
    updated_at = given.updated_at,
    result = given.result,
    last_error = given.last_error
FROM allowed, jsonb_populate_recordset(NULL::jobs, $1::jsonb) AS given
WHERE jobs.job_id = given.job_id
RETURNING
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error;

-- due_accept(CREATED_GRACE_SECONDS double precision, skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error, clock_timestamp() AS _now
FROM jobs
WHERE jobs.state IN ('CREATED')
    AND jobs.created_at < (SELECT clock_timestamp() - $1::double precision * interval '1 second')
    AND jobs.job_id <> ALL($2::uuid[])
ORDER BY jobs.created_at, jobs.job_id
LIMIT $3::integer
FOR NO KEY UPDATE OF jobs SKIP LOCKED;

-- due_fail(skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error, clock_timestamp() AS _now
FROM jobs
WHERE jobs.state IN ('RUNNING')
    AND jobs.lease_expiry < (SELECT clock_timestamp())
    AND jobs.job_id <> ALL($1::uuid[])
ORDER BY jobs.lease_expiry, jobs.job_id
LIMIT $2::integer
FOR NO KEY UPDATE OF jobs SKIP LOCKED;

-- due_requeue(skip uuid[], most integer)
-- Which are due, longest overdue first.
SELECT
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error, clock_timestamp() AS _now
FROM jobs
WHERE jobs.state IN ('RETRY')
    AND jobs.next_attempt_at < (SELECT clock_timestamp())
    AND jobs.job_id <> ALL($1::uuid[])
ORDER BY jobs.next_attempt_at, jobs.job_id
LIMIT $2::integer
FOR NO KEY UPDATE OF jobs SKIP LOCKED;

-- claim(actor text, free bigint, from timestamptz, record_job_type text, record_idempotency_key text, record_retry_count integer, record_attempt integer, record_lease_owner text, absent text[], record_last_error text, owner text, LEASE_SECONDS double precision)
-- Claims the next, as many as are asked for. (spec/orchestrator/lifecycle.yaml: job.acquire)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
next1 AS MATERIALIZED (
    SELECT jobs.ctid AS place, 1 AS rank, jobs.created_at AS age, greatest(clock_timestamp(), jobs.created_at, jobs.updated_at) AS moment, jobs.updated_at AS since
    FROM jobs
    WHERE jobs.state = 'QUEUED'
        AND (jobs.lease_expiry IS NULL OR jobs.lease_expiry < clock_timestamp())
        AND jobs.created_at >= $3::timestamptz
        AND ($4::text IS NULL OR jobs.job_type = $4::text)
        AND ($5::text IS NULL OR jobs.idempotency_key = $5::text)
        AND ($6::integer IS NULL OR jobs.retry_count = $6::integer)
        AND ($7::integer IS NULL OR jobs.attempt = $7::integer)
        AND ($8::text IS NULL OR jobs.lease_owner = $8::text)
        AND (jobs.lease_owner IS NULL OR 'lease_owner' <> ALL($9::text[]))
        AND ($10::text IS NULL OR jobs.last_error = $10::text)
        AND (jobs.last_error IS NULL OR 'last_error' <> ALL($9::text[]))
    ORDER BY jobs.created_at, jobs.job_id
    LIMIT $2::bigint
    FOR UPDATE OF jobs SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1
),
moved AS MATERIALIZED (
    SELECT next.*, $11::text AS owner FROM next
)
UPDATE jobs
SET
    state = 'RUNNING',
    lease_owner = moved.owner,
    attempt = jobs.attempt + 1,
    lease_expiry = moved.moment + $12::double precision * interval '1 second',
    next_attempt_at = NULL,
    updated_at = moved.moment
FROM moved, actor
WHERE jobs.ctid = moved.place
RETURNING
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error,
    moved.rank AS _rank, moved.age AS _age, extract(epoch FROM moved.moment - moved.since)::double precision AS _waited;

-- backlog()
-- How many can be claimed, and the age of the oldest.
SELECT 0 AS rank, count(*) AS entities, greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(jobs.created_at, timestamptz 'epoch'))), 0))::double precision AS oldest
FROM jobs
WHERE jobs.state = 'QUEUED' AND (jobs.lease_expiry IS NULL OR jobs.lease_expiry < clock_timestamp()) AND true;

-- settle_complete(actor text, keys uuid[], owners text[], fences bigint[], given_result jsonb[])
-- The job function returned. Its holder alone may. (spec/orchestrator/lifecycle.yaml: job.complete)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state
    FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::jsonb[]) AS given (key, owner, fence, given_result)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(clock_timestamp(), jobs.created_at, jobs.updated_at) AS moment, given.given_result
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.lease_owner = given.owner)
        AND (given.fence = 0 OR jobs.attempt = given.fence)
        AND (given.owner = '' OR (jobs.lease_expiry <= clock_timestamp()) IS NOT TRUE)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    state = 'SUCCESS',
    lease_expiry = NULL,
    lease_owner = NULL,
    next_attempt_at = NULL,
    updated_at = held.moment,
    result = held.given_result
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.attempt;

-- exchange_complete(actor text, keys uuid[], owners text[], fences bigint[], given_result jsonb[], free bigint, from timestamptz, record_job_type text, record_idempotency_key text, record_retry_count integer, record_attempt integer, record_lease_owner text, absent text[], record_last_error text, owner text, LEASE_SECONDS double precision)
-- The same, and claims one for each that it settled and some more, all in one commit.
-- One update for both, because what a statement pays for each update of a table with guards is more than what
-- it pays for some rows. A row that somebody else has is waited for so shortly that it need not be locked before.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state
    FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::jsonb[]) AS given (key, owner, fence, given_result)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(clock_timestamp(), jobs.created_at, jobs.updated_at) AS moment, given.given_result
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.lease_owner = given.owner)
        AND (given.fence = 0 OR jobs.attempt = given.fence)
        AND (given.owner = '' OR (jobs.lease_expiry <= clock_timestamp()) IS NOT TRUE)
),
next1 AS MATERIALIZED (
    SELECT jobs.ctid AS place, 1 AS rank, jobs.created_at AS age, greatest(clock_timestamp(), jobs.created_at, jobs.updated_at) AS moment, jobs.updated_at AS since
    FROM jobs
    WHERE jobs.state = 'QUEUED'
        AND (jobs.lease_expiry IS NULL OR jobs.lease_expiry < clock_timestamp())
        AND jobs.created_at >= $7::timestamptz
        AND ($8::text IS NULL OR jobs.job_type = $8::text)
        AND ($9::text IS NULL OR jobs.idempotency_key = $9::text)
        AND ($10::integer IS NULL OR jobs.retry_count = $10::integer)
        AND ($11::integer IS NULL OR jobs.attempt = $11::integer)
        AND ($12::text IS NULL OR jobs.lease_owner = $12::text)
        AND (jobs.lease_owner IS NULL OR 'lease_owner' <> ALL($13::text[]))
        AND ($14::text IS NULL OR jobs.last_error = $14::text)
        AND (jobs.last_error IS NULL OR 'last_error' <> ALL($13::text[]))
    ORDER BY jobs.created_at, jobs.job_id
    LIMIT $6::bigint + (SELECT count(*) FROM held)
    FOR UPDATE OF jobs SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1
),
moved AS MATERIALIZED (
    SELECT true AS settles, place, 0 AS rank, NULL::timestamptz AS age, moment, NULL::text AS owner, NULL::timestamptz AS since, given_result FROM held
    UNION ALL
    SELECT false, place, rank, age, moment, $15::text, since, NULL::jsonb FROM next
)
UPDATE jobs
SET
    state = CASE WHEN moved.settles THEN 'SUCCESS' ELSE 'RUNNING' END,
    lease_expiry = CASE WHEN moved.settles THEN NULL ELSE moved.moment + $16::double precision * interval '1 second' END,
    lease_owner = CASE WHEN moved.settles THEN NULL ELSE moved.owner END,
    next_attempt_at = NULL,
    updated_at = moved.moment,
    result = CASE WHEN moved.settles THEN moved.given_result ELSE jobs.result END,
    attempt = CASE WHEN moved.settles THEN jobs.attempt ELSE jobs.attempt + 1 END
FROM moved, actor
WHERE jobs.ctid = moved.place
RETURNING
    jobs.job_id AS job_id,
    CASE WHEN NOT moved.settles THEN jobs.job_type END AS job_type,
    CASE WHEN NOT moved.settles THEN jobs.payload END AS payload,
    CASE WHEN NOT moved.settles THEN jobs.idempotency_key END AS idempotency_key,
    CASE WHEN NOT moved.settles THEN jobs.state END AS state,
    CASE WHEN NOT moved.settles THEN jobs.retry_count END AS retry_count,
    jobs.attempt AS attempt,
    CASE WHEN NOT moved.settles THEN jobs.lease_owner END AS lease_owner,
    CASE WHEN NOT moved.settles THEN jobs.lease_expiry END AS lease_expiry,
    CASE WHEN NOT moved.settles THEN jobs.next_attempt_at END AS next_attempt_at,
    CASE WHEN NOT moved.settles THEN jobs.created_at END AS created_at,
    CASE WHEN NOT moved.settles THEN jobs.updated_at END AS updated_at,
    CASE WHEN NOT moved.settles THEN jobs.result END AS result,
    CASE WHEN NOT moved.settles THEN jobs.last_error END AS last_error,
    moved.rank AS _rank, moved.age AS _age, CASE WHEN NOT moved.settles THEN extract(epoch FROM moved.moment - moved.since)::double precision END AS _waited;

-- settle_release(actor text, keys uuid[], owners text[], fences bigint[], given_last_error text[])
-- The worker is stopped and gives back what it has not done. That is no failure, and the wait is over at once. Its holder alone may. (spec/orchestrator/lifecycle.yaml: job.release)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'release', true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state
    FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::text[]) AS given (key, owner, fence, given_last_error)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(clock_timestamp(), jobs.created_at, jobs.updated_at) AS moment, given.given_last_error
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.lease_owner = given.owner)
        AND (given.fence = 0 OR jobs.attempt = given.fence)
        AND (given.owner = '' OR (jobs.lease_expiry <= clock_timestamp()) IS NOT TRUE)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    state = 'RETRY',
    lease_expiry = NULL,
    lease_owner = NULL,
    next_attempt_at = held.moment,
    updated_at = held.moment,
    last_error = held.given_last_error
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.attempt;

-- exchange_release(actor text, keys uuid[], owners text[], fences bigint[], given_last_error text[], free bigint, from timestamptz, record_job_type text, record_idempotency_key text, record_retry_count integer, record_attempt integer, record_lease_owner text, absent text[], record_last_error text, owner text, LEASE_SECONDS double precision)
-- The same, and claims one for each that it settled and some more, all in one commit.
-- One update for both, because what a statement pays for each update of a table with guards is more than what
-- it pays for some rows. A row that somebody else has is waited for so shortly that it need not be locked before.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'release', true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state
    FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::text[]) AS given (key, owner, fence, given_last_error)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(clock_timestamp(), jobs.created_at, jobs.updated_at) AS moment, given.given_last_error
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.lease_owner = given.owner)
        AND (given.fence = 0 OR jobs.attempt = given.fence)
        AND (given.owner = '' OR (jobs.lease_expiry <= clock_timestamp()) IS NOT TRUE)
),
next1 AS MATERIALIZED (
    SELECT jobs.ctid AS place, 1 AS rank, jobs.created_at AS age, greatest(clock_timestamp(), jobs.created_at, jobs.updated_at) AS moment, jobs.updated_at AS since
    FROM jobs
    WHERE jobs.state = 'QUEUED'
        AND (jobs.lease_expiry IS NULL OR jobs.lease_expiry < clock_timestamp())
        AND jobs.created_at >= $7::timestamptz
        AND ($8::text IS NULL OR jobs.job_type = $8::text)
        AND ($9::text IS NULL OR jobs.idempotency_key = $9::text)
        AND ($10::integer IS NULL OR jobs.retry_count = $10::integer)
        AND ($11::integer IS NULL OR jobs.attempt = $11::integer)
        AND ($12::text IS NULL OR jobs.lease_owner = $12::text)
        AND (jobs.lease_owner IS NULL OR 'lease_owner' <> ALL($13::text[]))
        AND ($14::text IS NULL OR jobs.last_error = $14::text)
        AND (jobs.last_error IS NULL OR 'last_error' <> ALL($13::text[]))
    ORDER BY jobs.created_at, jobs.job_id
    LIMIT $6::bigint + (SELECT count(*) FROM held)
    FOR UPDATE OF jobs SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1
),
moved AS MATERIALIZED (
    SELECT true AS settles, place, 0 AS rank, NULL::timestamptz AS age, moment, NULL::text AS owner, NULL::timestamptz AS since, given_last_error FROM held
    UNION ALL
    SELECT false, place, rank, age, moment, $15::text, since, NULL::text FROM next
)
UPDATE jobs
SET
    state = CASE WHEN moved.settles THEN 'RETRY' ELSE 'RUNNING' END,
    lease_expiry = CASE WHEN moved.settles THEN NULL ELSE moved.moment + $16::double precision * interval '1 second' END,
    lease_owner = CASE WHEN moved.settles THEN NULL ELSE moved.owner END,
    next_attempt_at = CASE WHEN moved.settles THEN moved.moment ELSE NULL END,
    updated_at = moved.moment,
    last_error = CASE WHEN moved.settles THEN moved.given_last_error ELSE jobs.last_error END,
    attempt = CASE WHEN moved.settles THEN jobs.attempt ELSE jobs.attempt + 1 END
FROM moved, actor
WHERE jobs.ctid = moved.place
RETURNING
    jobs.job_id AS job_id,
    CASE WHEN NOT moved.settles THEN jobs.job_type END AS job_type,
    CASE WHEN NOT moved.settles THEN jobs.payload END AS payload,
    CASE WHEN NOT moved.settles THEN jobs.idempotency_key END AS idempotency_key,
    CASE WHEN NOT moved.settles THEN jobs.state END AS state,
    CASE WHEN NOT moved.settles THEN jobs.retry_count END AS retry_count,
    jobs.attempt AS attempt,
    CASE WHEN NOT moved.settles THEN jobs.lease_owner END AS lease_owner,
    CASE WHEN NOT moved.settles THEN jobs.lease_expiry END AS lease_expiry,
    CASE WHEN NOT moved.settles THEN jobs.next_attempt_at END AS next_attempt_at,
    CASE WHEN NOT moved.settles THEN jobs.created_at END AS created_at,
    CASE WHEN NOT moved.settles THEN jobs.updated_at END AS updated_at,
    CASE WHEN NOT moved.settles THEN jobs.result END AS result,
    CASE WHEN NOT moved.settles THEN jobs.last_error END AS last_error,
    moved.rank AS _rank, moved.age AS _age, CASE WHEN NOT moved.settles THEN extract(epoch FROM moved.moment - moved.since)::double precision END AS _waited;

-- renew(actor text, keys uuid[], owners text[], fences bigint[], seconds double precision, LEASE_SECONDS double precision)
-- Lets leases begin anew that have not ended.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state
    FROM unnest($2::uuid[], $3::text[], $4::bigint[]) AS given (key, owner, fence)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(clock_timestamp(), jobs.created_at, jobs.updated_at) AS moment
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.lease_owner = given.owner)
        AND (given.fence = 0 OR jobs.attempt = given.fence)
        AND (given.owner = '' OR (jobs.lease_expiry <= clock_timestamp()) IS NOT TRUE)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    lease_expiry = clock_timestamp() + coalesce($5::double precision, $6::double precision) * interval '1 second'
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error;

-- holds(keys uuid[])
-- Some as they are, to explain what was not written.
SELECT
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error, clock_timestamp() AS _now
FROM jobs
WHERE job_id = ANY($1::uuid[]);

-- find_newest(states text[], since timestamptz, until timestamptz, after_at timestamptz, after_key uuid, record_job_type text, record_idempotency_key text, record_retry_count integer, record_attempt integer, record_lease_owner text, absent text[], record_last_error text, size bigint, offset bigint)
-- A page of the listing, the newest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error
FROM (
    (SELECT * FROM jobs AS one
    WHERE one.state = 'QUEUED' AND 'QUEUED' = ANY($1::text[])
        AND ($2::timestamptz IS NULL OR one.created_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.created_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <> $4::timestamptz OR one.job_id > $5::uuid)
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND (one.lease_owner IS NULL OR 'lease_owner' <> ALL($11::text[]))
        AND ($12::text IS NULL OR one.last_error = $12::text)
        AND (one.last_error IS NULL OR 'last_error' <> ALL($11::text[]))
    ORDER BY one.created_at DESC, one.job_id
    LIMIT $13::bigint + $14::bigint
    )
    UNION ALL
    (SELECT * FROM jobs AS one
    WHERE one.state = 'RUNNING' AND 'RUNNING' = ANY($1::text[])
        AND ($2::timestamptz IS NULL OR one.created_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.created_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <> $4::timestamptz OR one.job_id > $5::uuid)
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND (one.lease_owner IS NULL OR 'lease_owner' <> ALL($11::text[]))
        AND ($12::text IS NULL OR one.last_error = $12::text)
        AND (one.last_error IS NULL OR 'last_error' <> ALL($11::text[]))
    ORDER BY one.created_at DESC, one.job_id
    LIMIT $13::bigint + $14::bigint
    )
    UNION ALL
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM jobs AS one
    WHERE one.state = wanted.state
        AND one.state <> 'QUEUED'
        AND one.state <> 'RUNNING'
        AND ($2::timestamptz IS NULL OR one.created_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.created_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <> $4::timestamptz OR one.job_id > $5::uuid)
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND (one.lease_owner IS NULL OR 'lease_owner' <> ALL($11::text[]))
        AND ($12::text IS NULL OR one.last_error = $12::text)
        AND (one.last_error IS NULL OR 'last_error' <> ALL($11::text[]))
    ORDER BY one.created_at DESC, one.job_id
    LIMIT $13::bigint + $14::bigint
    ) AS listed
) AS jobs
ORDER BY jobs.created_at DESC, jobs.job_id
OFFSET $14::bigint LIMIT $13::bigint;

-- find_oldest(states text[], since timestamptz, until timestamptz, after_at timestamptz, after_key uuid, record_job_type text, record_idempotency_key text, record_retry_count integer, record_attempt integer, record_lease_owner text, absent text[], record_last_error text, size bigint, offset bigint)
-- A page of the listing, the oldest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    jobs.job_id,
    jobs.job_type,
    jobs.payload,
    jobs.idempotency_key,
    jobs.state,
    jobs.retry_count,
    jobs.attempt,
    jobs.lease_owner,
    jobs.lease_expiry,
    jobs.next_attempt_at,
    jobs.created_at,
    jobs.updated_at,
    jobs.result,
    jobs.last_error
FROM (
    (SELECT * FROM jobs AS one
    WHERE one.state = 'QUEUED' AND 'QUEUED' = ANY($1::text[])
        AND ($2::timestamptz IS NULL OR one.created_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.created_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at >= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <> $4::timestamptz OR one.job_id > $5::uuid)
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND (one.lease_owner IS NULL OR 'lease_owner' <> ALL($11::text[]))
        AND ($12::text IS NULL OR one.last_error = $12::text)
        AND (one.last_error IS NULL OR 'last_error' <> ALL($11::text[]))
    ORDER BY one.created_at ASC, one.job_id
    LIMIT $13::bigint + $14::bigint
    )
    UNION ALL
    (SELECT * FROM jobs AS one
    WHERE one.state = 'RUNNING' AND 'RUNNING' = ANY($1::text[])
        AND ($2::timestamptz IS NULL OR one.created_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.created_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at >= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <> $4::timestamptz OR one.job_id > $5::uuid)
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND (one.lease_owner IS NULL OR 'lease_owner' <> ALL($11::text[]))
        AND ($12::text IS NULL OR one.last_error = $12::text)
        AND (one.last_error IS NULL OR 'last_error' <> ALL($11::text[]))
    ORDER BY one.created_at ASC, one.job_id
    LIMIT $13::bigint + $14::bigint
    )
    UNION ALL
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM jobs AS one
    WHERE one.state = wanted.state
        AND one.state <> 'QUEUED'
        AND one.state <> 'RUNNING'
        AND ($2::timestamptz IS NULL OR one.created_at >= $2::timestamptz)
        AND ($3::timestamptz IS NULL OR one.created_at < $3::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at >= $4::timestamptz)
        AND ($4::timestamptz IS NULL OR one.created_at <> $4::timestamptz OR one.job_id > $5::uuid)
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND (one.lease_owner IS NULL OR 'lease_owner' <> ALL($11::text[]))
        AND ($12::text IS NULL OR one.last_error = $12::text)
        AND (one.last_error IS NULL OR 'last_error' <> ALL($11::text[]))
    ORDER BY one.created_at ASC, one.job_id
    LIMIT $13::bigint + $14::bigint
    ) AS listed
) AS jobs
ORDER BY jobs.created_at ASC, jobs.job_id
OFFSET $14::bigint LIMIT $13::bigint;

-- history(key uuid)
-- Every state change of one job, oldest first.
SELECT from_state, to_state, actor, fence, at, edge, NULL, NULL, NULL
FROM job_transitions
WHERE job_id = $1::uuid
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT state, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(jobs.created_at, timestamptz 'epoch'))), 0))::double precision
FROM jobs
WHERE state = 'QUEUED'
GROUP BY state
UNION ALL
SELECT state, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(jobs.created_at, timestamptz 'epoch'))), 0))::double precision
FROM jobs
WHERE state = 'RUNNING'
GROUP BY state
UNION ALL
SELECT state, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(jobs.created_at, timestamptz 'epoch'))), 0))::double precision
FROM jobs
WHERE state <> 'QUEUED' AND state <> 'RUNNING'
GROUP BY state;

-- count_since(since timestamptz)
-- How many there are in each state, since a time.
SELECT state, count(*) FROM jobs
WHERE created_at >= $1::timestamptz
GROUP BY state;

-- delete(keys uuid[], states text[], actor text)
-- Deletes some, each in the state that is expected.
SELECT removed FROM unnest($1::uuid[], $2::text[]) AS given (key, state),
    LATERAL jobs_remove($3::text, given.key, given.state) AS removed;

-- purge(actor text, older_than double precision, most integer)
-- Deletes those that ended long ago, and their history.
SELECT jobs_purge($1::text, $2::double precision, $3::integer);
