-- Every statement that the engine sends about a job of orchestrator.
-- Generated from spec/orchestrator (sha256:159d75815b2c6e54). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- create(actor text, record_job_id uuid[], record_job_type text[], record_payload jsonb[], record_idempotency_key text[])
-- Adds a job unless one has the same idempotency_key.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
)
INSERT INTO jobs (job_id, job_type, payload, idempotency_key)
SELECT given.job_id, given.job_type, given.payload, given.idempotency_key
FROM actor, unnest($2::uuid[], $3::text[], $4::jsonb[], $5::text[])
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

-- create_shared(actor text, record_job_id uuid[], record_job_type text[], record_payload jsonb[], record_idempotency_key text[])
-- The same for several who ask at once.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
)
INSERT INTO jobs (job_id, job_type, payload, idempotency_key)
SELECT given.job_id, given.job_type, given.payload, given.idempotency_key
FROM actor, unnest($2::uuid[], $3::text[], $4::jsonb[], $5::text[])
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

-- find_unique(record_idempotency_key text[])
-- The job that has what a new one must not share.
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
FROM unnest($1::text[]) AS given (idempotency_key)
JOIN jobs USING (idempotency_key);

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

-- states(keys uuid[])
-- The states of some, for whoever must know why nothing happened.
SELECT job_id, state FROM jobs WHERE job_id = ANY($1::uuid[]);

-- move_accept(actor text, keys uuid[])
-- The API accepts the job; its sweeper does so for one that was left behind. (spec/orchestrator/lifecycle.yaml: job.accept)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'CREATED' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[]) AS given (key)
)
UPDATE jobs
SET
    state = 'QUEUED',
    next_attempt_at = NULL,
    updated_at = given.moment
FROM given, actor
WHERE jobs.job_id = given.key
    AND (jobs.state = given.state) IS TRUE
RETURNING jobs.job_id;

-- move_accept_relaxed(actor text, keys uuid[])
-- The same in a transaction of its own, whose answer does not wait for the disk.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- A crash of the server may undo this step, and only this one: the sweep then takes it again.
    set_config('synchronous_commit', 'off', true)
),
given AS MATERIALIZED (
    SELECT *, 'CREATED' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[]) AS given (key)
)
UPDATE jobs
SET
    state = 'QUEUED',
    next_attempt_at = NULL,
    updated_at = given.moment
FROM given, actor
WHERE jobs.job_id = given.key
    AND (jobs.state = given.state) IS TRUE
RETURNING jobs.job_id;

-- move_accept_shared(actor text, keys uuid[])
-- The same for those that nobody has locked.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- A crash of the server may undo this step, and only this one: the sweep then takes it again.
    set_config('synchronous_commit', 'off', true)
),
given AS MATERIALIZED (
    SELECT *, 'CREATED' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[]) AS given (key)
),
found AS MATERIALIZED (
    SELECT jobs.ctid AS place, given.moment
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    state = 'QUEUED',
    next_attempt_at = NULL,
    updated_at = found.moment
FROM found, actor
WHERE jobs.ctid = found.place
RETURNING jobs.job_id;

-- sweep_accept(actor text, CREATED_GRACE_SECONDS double precision, skip uuid[], most integer)
-- All of them by the clock, some at a time. (spec/orchestrator/lifecycle.yaml: job.accept)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- A crash of the server may undo this step, and only this one: the sweep then takes it again.
    set_config('synchronous_commit', 'off', true)
),
due AS MATERIALIZED (
    SELECT ctid AS place, clock_timestamp() AS moment
    FROM jobs
    WHERE state = 'CREATED'
        -- A clock that is asked once can be looked up in the index.
        AND created_at < (SELECT clock_timestamp() - $2::double precision * interval '1 second')
        AND job_id <> ALL($3::uuid[])
    ORDER BY jobs.created_at
    LIMIT $4::integer
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs
SET
    state = 'QUEUED',
    next_attempt_at = NULL,
    updated_at = due.moment
FROM due, actor
WHERE jobs.ctid = due.place
RETURNING jobs.job_id;

-- due_accept(CREATED_GRACE_SECONDS double precision, skip uuid[], most integer)
-- Which are due, where one of them stands in the way of the others.
SELECT job_id
    FROM jobs
    WHERE state = 'CREATED'
        -- A clock that is asked once can be looked up in the index.
        AND created_at < (SELECT clock_timestamp() - $1::double precision * interval '1 second')
        AND job_id <> ALL($2::uuid[])
ORDER BY jobs.created_at
LIMIT $3::integer;

-- acquire(actor text, free integer, from timestamptz, owner text, LEASE_SECONDS double precision)
-- Takes the oldest that are free, as many as are asked for. (spec/orchestrator/lifecycle.yaml: job.acquire)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
next AS MATERIALIZED (
    SELECT ctid AS place, updated_at AS since
    FROM jobs
    WHERE state = 'QUEUED'
        AND (lease_expiry IS NULL OR lease_expiry < clock_timestamp())
        AND created_at >= $3::timestamptz
    ORDER BY jobs.created_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
),
taken AS MATERIALIZED (
    SELECT place, since, clock_timestamp() AS moment, $4::text AS owner FROM next
)
UPDATE jobs
SET
    state = 'RUNNING',
    lease_owner = taken.owner,
    lease_expiry = taken.moment + $5::double precision * interval '1 second',
    attempt = jobs.attempt + 1,
    next_attempt_at = NULL,
    updated_at = taken.moment
FROM taken, actor
WHERE jobs.ctid = taken.place
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
    extract(epoch FROM taken.moment - taken.since)::double precision AS _waited;

-- settle_complete(actor text, keys uuid[], owners text[], fences integer[], given_result jsonb[])
-- The job function returned. Its holder alone may. (spec/orchestrator/lifecycle.yaml: job.complete)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::jsonb[]) AS given (key, owner, fence, given_result)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, given.moment, given.given_result
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    state = 'SUCCESS',
    lease_owner = NULL,
    lease_expiry = NULL,
    next_attempt_at = NULL,
    updated_at = held.moment,
    result = held.given_result
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.attempt;

-- settle_complete_alone(actor text, keys uuid[], owners text[], fences integer[], given_result jsonb[])
-- The same for one that somebody else had locked, in its latest version.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::jsonb[]) AS given (key, owner, fence, given_result)
)
UPDATE jobs
SET
    state = 'SUCCESS',
    lease_owner = NULL,
    lease_expiry = NULL,
    next_attempt_at = NULL,
    updated_at = given.moment,
    result = given.given_result
FROM given, actor
WHERE jobs.job_id = given.key
        AND (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
RETURNING jobs.job_id, jobs.attempt;

-- exchange_complete(actor text, keys uuid[], owners text[], fences integer[], given_result jsonb[], free integer, from timestamptz, owner text, LEASE_SECONDS double precision)
-- The same, and takes one for each that it settled and some more, all in one commit.
-- One update for both, because what a statement pays for each update of a table with guards is more than what
-- it pays for some rows. A row that somebody else has is waited for so shortly that it need not be locked before.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::jsonb[]) AS given (key, owner, fence, given_result)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, given.moment, given.given_result
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
),
next AS MATERIALIZED (
    SELECT ctid AS place, updated_at AS since
    FROM jobs
    WHERE state = 'QUEUED'
        AND (lease_expiry IS NULL OR lease_expiry < clock_timestamp())
        AND created_at >= $7::timestamptz
    ORDER BY jobs.created_at
    LIMIT $6::integer + (SELECT count(*) FROM held)
    FOR UPDATE SKIP LOCKED
),
moved AS MATERIALIZED (
    SELECT true AS settles, place, moment, NULL::text AS owner, NULL::timestamptz AS since, given_result FROM held
    UNION ALL
    SELECT false, place, clock_timestamp(), $8::text, since, NULL::jsonb FROM next
)
UPDATE jobs
SET
    state = CASE WHEN moved.settles THEN 'SUCCESS' ELSE 'RUNNING' END,
    lease_owner = CASE WHEN moved.settles THEN NULL ELSE moved.owner END,
    lease_expiry = CASE WHEN moved.settles THEN NULL ELSE moved.moment + $9::double precision * interval '1 second' END,
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
    CASE WHEN NOT moved.settles THEN extract(epoch FROM moved.moment - moved.since)::double precision END AS _waited;

-- settle_fail(actor text, keys uuid[], owners text[], fences integer[], given_error text[], BACKOFF_MAX_SECONDS double precision, BACKOFF_BASE_SECONDS double precision)
-- The run failed, or its worker was not heard of until its lease ended. Its holder alone may. (spec/orchestrator/lifecycle.yaml: job.fail)
-- cuts given_error to 2000 bytes
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'fail', true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::text[]) AS given (key, owner, fence, given_error)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, given.moment, given.given_error
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    state = 'RETRY',
    lease_owner = NULL,
    lease_expiry = NULL,
    retry_count = jobs.retry_count + 1,
    next_attempt_at = held.moment + least($6::double precision, CASE jobs.job_type WHEN 'SEND_EMAIL' THEN 10 ELSE $7::double precision END * 2 ^ least(jobs.retry_count, 60)) * interval '1 second',
    updated_at = held.moment,
    last_error = coalesce(nullif(held.given_error, ''), 'LEASE_EXPIRED')
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.attempt;

-- settle_fail_alone(actor text, keys uuid[], owners text[], fences integer[], given_error text[], BACKOFF_MAX_SECONDS double precision, BACKOFF_BASE_SECONDS double precision)
-- The same for one that somebody else had locked, in its latest version.
-- cuts given_error to 2000 bytes
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'fail', true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::text[]) AS given (key, owner, fence, given_error)
)
UPDATE jobs
SET
    state = 'RETRY',
    lease_owner = NULL,
    lease_expiry = NULL,
    retry_count = jobs.retry_count + 1,
    next_attempt_at = given.moment + least($6::double precision, CASE jobs.job_type WHEN 'SEND_EMAIL' THEN 10 ELSE $7::double precision END * 2 ^ least(jobs.retry_count, 60)) * interval '1 second',
    updated_at = given.moment,
    last_error = coalesce(nullif(given.given_error, ''), 'LEASE_EXPIRED')
FROM given, actor
WHERE jobs.job_id = given.key
        AND (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
RETURNING jobs.job_id, jobs.attempt;

-- sweep_fail(actor text, skip uuid[], most integer, BACKOFF_MAX_SECONDS double precision, BACKOFF_BASE_SECONDS double precision)
-- All of them by the clock, some at a time. (spec/orchestrator/lifecycle.yaml: job.fail)
-- cuts given_error to 2000 bytes
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'fail', true)
),
due AS MATERIALIZED (
    SELECT ctid AS place, clock_timestamp() AS moment, NULL::text AS given_error
    FROM jobs
    WHERE state = 'RUNNING'
        -- A clock that is asked once can be looked up in the index.
        AND lease_expiry < (SELECT clock_timestamp())
        AND job_id <> ALL($2::uuid[])
    ORDER BY jobs.lease_expiry
    LIMIT $3::integer
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs
SET
    state = 'RETRY',
    lease_owner = NULL,
    lease_expiry = NULL,
    retry_count = jobs.retry_count + 1,
    next_attempt_at = due.moment + least($4::double precision, CASE jobs.job_type WHEN 'SEND_EMAIL' THEN 10 ELSE $5::double precision END * 2 ^ least(jobs.retry_count, 60)) * interval '1 second',
    updated_at = due.moment,
    last_error = coalesce(nullif(due.given_error, ''), 'LEASE_EXPIRED')
FROM due, actor
WHERE jobs.ctid = due.place
RETURNING jobs.job_id;

-- due_fail(skip uuid[], most integer)
-- Which are due, where one of them stands in the way of the others.
-- cuts given_error to 2000 bytes
SELECT job_id
    FROM jobs
    WHERE state = 'RUNNING'
        -- A clock that is asked once can be looked up in the index.
        AND lease_expiry < (SELECT clock_timestamp())
        AND job_id <> ALL($1::uuid[])
ORDER BY jobs.lease_expiry
LIMIT $2::integer;

-- give_up_fail(actor text, keys uuid[], final boolean[], MAX_RETRIES integer)
-- It failed more often than allowed, or for good. In the transaction that failed. (spec/orchestrator/lifecycle.yaml: job.fail)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RETRY' AS state
    FROM unnest($2::uuid[], $3::boolean[]) AS given (key, final)
),
failed AS MATERIALIZED (
    SELECT jobs.ctid AS place, clock_timestamp() AS moment
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        AND (jobs.retry_count > CASE jobs.job_type WHEN 'SEND_EMAIL' THEN 5 ELSE $4::integer END OR given.final)
)
UPDATE jobs
SET
    state = 'DEAD',
    next_attempt_at = NULL,
    updated_at = failed.moment
FROM failed, actor
WHERE jobs.ctid = failed.place
RETURNING jobs.job_id;

-- settle_release(actor text, keys uuid[], owners text[], fences integer[], given_error text[])
-- The worker is stopped and gives back what it has not done. That is no failure, and the wait is over at once. Its holder alone may. (spec/orchestrator/lifecycle.yaml: job.release)
-- cuts given_error to 2000 bytes
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'release', true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::text[]) AS given (key, owner, fence, given_error)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, given.moment, given.given_error
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    state = 'RETRY',
    lease_owner = NULL,
    lease_expiry = NULL,
    next_attempt_at = held.moment,
    updated_at = held.moment,
    last_error = coalesce(nullif(held.given_error, ''), 'GIVEN_BACK')
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.attempt;

-- settle_release_alone(actor text, keys uuid[], owners text[], fences integer[], given_error text[])
-- The same for one that somebody else had locked, in its latest version.
-- cuts given_error to 2000 bytes
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'release', true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::text[]) AS given (key, owner, fence, given_error)
)
UPDATE jobs
SET
    state = 'RETRY',
    lease_owner = NULL,
    lease_expiry = NULL,
    next_attempt_at = given.moment,
    updated_at = given.moment,
    last_error = coalesce(nullif(given.given_error, ''), 'GIVEN_BACK')
FROM given, actor
WHERE jobs.job_id = given.key
        AND (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
RETURNING jobs.job_id, jobs.attempt;

-- exchange_release(actor text, keys uuid[], owners text[], fences integer[], given_error text[], free integer, from timestamptz, owner text, LEASE_SECONDS double precision)
-- The same, and takes one for each that it settled and some more, all in one commit.
-- cuts given_error to 2000 bytes
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
    SELECT *, 'RUNNING' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::text[]) AS given (key, owner, fence, given_error)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, given.moment, given.given_error
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
),
next AS MATERIALIZED (
    SELECT ctid AS place, updated_at AS since
    FROM jobs
    WHERE state = 'QUEUED'
        AND (lease_expiry IS NULL OR lease_expiry < clock_timestamp())
        AND created_at >= $7::timestamptz
    ORDER BY jobs.created_at
    LIMIT $6::integer + (SELECT count(*) FROM held)
    FOR UPDATE SKIP LOCKED
),
moved AS MATERIALIZED (
    SELECT true AS settles, place, moment, NULL::text AS owner, NULL::timestamptz AS since, given_error FROM held
    UNION ALL
    SELECT false, place, clock_timestamp(), $8::text, since, NULL::text FROM next
)
UPDATE jobs
SET
    state = CASE WHEN moved.settles THEN 'RETRY' ELSE 'RUNNING' END,
    lease_owner = CASE WHEN moved.settles THEN NULL ELSE moved.owner END,
    lease_expiry = CASE WHEN moved.settles THEN NULL ELSE moved.moment + $9::double precision * interval '1 second' END,
    next_attempt_at = CASE WHEN moved.settles THEN moved.moment ELSE NULL END,
    updated_at = moved.moment,
    last_error = CASE WHEN moved.settles THEN coalesce(nullif(moved.given_error, ''), 'GIVEN_BACK') ELSE jobs.last_error END,
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
    CASE WHEN NOT moved.settles THEN extract(epoch FROM moved.moment - moved.since)::double precision END AS _waited;

-- move_requeue(actor text, keys uuid[])
-- The wait is over. (spec/orchestrator/lifecycle.yaml: job.requeue)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RETRY' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[]) AS given (key)
)
UPDATE jobs
SET
    state = 'QUEUED',
    next_attempt_at = NULL,
    updated_at = given.moment
FROM given, actor
WHERE jobs.job_id = given.key
    AND (jobs.state = given.state) IS TRUE
RETURNING jobs.job_id;

-- move_requeue_shared(actor text, keys uuid[])
-- The same for those that nobody has locked.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RETRY' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[]) AS given (key)
),
found AS MATERIALIZED (
    SELECT jobs.ctid AS place, given.moment
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    state = 'QUEUED',
    next_attempt_at = NULL,
    updated_at = found.moment
FROM found, actor
WHERE jobs.ctid = found.place
RETURNING jobs.job_id;

-- sweep_requeue(actor text, MAX_RETRIES integer, skip uuid[], most integer)
-- All of them by the clock, some at a time. (spec/orchestrator/lifecycle.yaml: job.requeue)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
due AS MATERIALIZED (
    SELECT ctid AS place, clock_timestamp() AS moment
    FROM jobs
    WHERE state = 'RETRY'
        -- A clock that is asked once can be looked up in the index.
        AND next_attempt_at < (SELECT clock_timestamp())
        AND retry_count <= CASE jobs.job_type WHEN 'SEND_EMAIL' THEN 5 ELSE $2::integer END
        AND job_id <> ALL($3::uuid[])
    ORDER BY jobs.next_attempt_at
    LIMIT $4::integer
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs
SET
    state = 'QUEUED',
    next_attempt_at = NULL,
    updated_at = due.moment
FROM due, actor
WHERE jobs.ctid = due.place
RETURNING jobs.job_id;

-- due_requeue(skip uuid[], most integer)
-- Which are due, where one of them stands in the way of the others.
SELECT job_id
    FROM jobs
    WHERE state = 'RETRY'
        -- A clock that is asked once can be looked up in the index.
        AND next_attempt_at < (SELECT clock_timestamp())
        AND job_id <> ALL($1::uuid[])
ORDER BY jobs.next_attempt_at
LIMIT $2::integer;

-- sweep_requeue_giving_up(actor text, MAX_RETRIES integer, skip uuid[], most integer)
-- It failed more often than allowed, or for good. (spec/orchestrator/lifecycle.yaml: job.requeue)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
due AS MATERIALIZED (
    SELECT ctid AS place, clock_timestamp() AS moment
    FROM jobs
    WHERE state = 'RETRY'
        -- A clock that is asked once can be looked up in the index.
        AND next_attempt_at < (SELECT clock_timestamp())
        AND retry_count > CASE jobs.job_type WHEN 'SEND_EMAIL' THEN 5 ELSE $2::integer END
        AND job_id <> ALL($3::uuid[])
    ORDER BY jobs.next_attempt_at
    LIMIT $4::integer
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs
SET
    state = 'DEAD',
    next_attempt_at = NULL,
    updated_at = due.moment
FROM due, actor
WHERE jobs.ctid = due.place
RETURNING jobs.job_id;

-- move_bury(actor text, keys uuid[])
-- It failed more often than allowed, or for good. (spec/orchestrator/lifecycle.yaml: job.bury)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RETRY' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[]) AS given (key)
)
UPDATE jobs
SET
    state = 'DEAD',
    next_attempt_at = NULL,
    updated_at = given.moment
FROM given, actor
WHERE jobs.job_id = given.key
    AND (jobs.state = given.state) IS TRUE
RETURNING jobs.job_id;

-- move_bury_shared(actor text, keys uuid[])
-- The same for those that nobody has locked.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RETRY' AS state, clock_timestamp() AS moment
    FROM unnest($2::uuid[]) AS given (key)
),
found AS MATERIALIZED (
    SELECT jobs.ctid AS place, given.moment
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    state = 'DEAD',
    next_attempt_at = NULL,
    updated_at = found.moment
FROM found, actor
WHERE jobs.ctid = found.place
RETURNING jobs.job_id;

-- renew(actor text, keys uuid[], owners text[], fences integer[], LEASE_SECONDS double precision)
-- Makes a lease longer that has not ended; its holder alone may.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'RUNNING' AS state
    FROM unnest($2::uuid[], $3::text[], $4::integer[]) AS given (key, owner, fence)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.state = given.state) IS TRUE
        AND jobs.lease_owner = given.owner
        AND jobs.attempt = given.fence
        AND jobs.lease_expiry > clock_timestamp()
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET lease_expiry = clock_timestamp() + $5::double precision * interval '1 second'
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.attempt;

-- holds(keys uuid[])
-- Who holds the lease of each, and whether it goes on.
SELECT
    job_id, state, lease_owner, attempt,
    state = 'RUNNING' AND lease_expiry > clock_timestamp() AS goes_on
FROM jobs
WHERE job_id = ANY($1::uuid[]);

-- find(states text[], since timestamptz, until timestamptz, after_at timestamptz, after_key uuid, record_job_type text, record_idempotency_key text, record_retry_count integer, record_attempt integer, record_lease_owner text, record_last_error text, size integer)
-- A page of the listing, newest first.
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
        AND one.created_at >= coalesce($2::timestamptz, '-infinity')
        AND one.created_at < coalesce($3::timestamptz, 'infinity')
        AND (one.created_at, one.job_id) < (coalesce($4::timestamptz, 'infinity'), coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND ($11::text IS NULL OR one.last_error = $11::text)
    ORDER BY one.created_at DESC, one.job_id DESC
    LIMIT $12::integer
    )
    UNION ALL
    (SELECT * FROM jobs AS one
    WHERE one.state = 'RUNNING' AND 'RUNNING' = ANY($1::text[])
        AND one.created_at >= coalesce($2::timestamptz, '-infinity')
        AND one.created_at < coalesce($3::timestamptz, 'infinity')
        AND (one.created_at, one.job_id) < (coalesce($4::timestamptz, 'infinity'), coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND ($11::text IS NULL OR one.last_error = $11::text)
    ORDER BY one.created_at DESC, one.job_id DESC
    LIMIT $12::integer
    )
    UNION ALL
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM jobs AS one
    WHERE one.state = wanted.state
        AND one.state <> 'QUEUED'
        AND one.state <> 'RUNNING'
        AND one.created_at >= coalesce($2::timestamptz, '-infinity')
        AND one.created_at < coalesce($3::timestamptz, 'infinity')
        AND (one.created_at, one.job_id) < (coalesce($4::timestamptz, 'infinity'), coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
        AND ($6::text IS NULL OR one.job_type = $6::text)
        AND ($7::text IS NULL OR one.idempotency_key = $7::text)
        AND ($8::integer IS NULL OR one.retry_count = $8::integer)
        AND ($9::integer IS NULL OR one.attempt = $9::integer)
        AND ($10::text IS NULL OR one.lease_owner = $10::text)
        AND ($11::text IS NULL OR one.last_error = $11::text)
    ORDER BY one.created_at DESC, one.job_id DESC
    LIMIT $12::integer
    ) AS listed
) AS jobs
ORDER BY jobs.created_at DESC, jobs.job_id DESC
LIMIT $12::integer;

-- page_newest(states text[], offset bigint, size bigint)
-- A part of the listing, the newest first.
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
WHERE state = ANY($1::text[])
ORDER BY jobs.created_at DESC, jobs.job_id
OFFSET $2::bigint LIMIT $3::bigint;

-- page_oldest(states text[], offset bigint, size bigint)
-- A part of the listing, the oldest first.
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
WHERE state = ANY($1::text[])
ORDER BY jobs.created_at ASC, jobs.job_id
OFFSET $2::bigint LIMIT $3::bigint;

-- history(key uuid)
-- Every state change of one job, oldest first.
SELECT coalesce(from_state, ''), to_state, actor, fence, at, coalesce(edge, '')
FROM job_transitions
WHERE job_id = $1::uuid
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT state, count(*), coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::double precision
FROM jobs
WHERE state = 'QUEUED'
GROUP BY state
UNION ALL
SELECT state, count(*), coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::double precision
FROM jobs
WHERE state = 'RUNNING'
GROUP BY state
UNION ALL
SELECT state, count(*), coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::double precision
FROM jobs
WHERE state <> 'QUEUED' AND state <> 'RUNNING'
GROUP BY state;

-- delete(actor text, key uuid, expected text)
-- Takes one job back.
SELECT jobs_remove($1::text, $2::uuid, $3::text);

-- purge(actor text, older_than double precision, most integer)
-- Deletes those that ended long ago, and their history.
SELECT jobs_purge($1::text, $2::double precision, $3::integer);
