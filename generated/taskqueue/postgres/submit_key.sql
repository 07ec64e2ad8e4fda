-- Every statement that the engine sends about a submit_key of taskqueue.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- columns(client_request_id text, presence text, job_id text, remembered_at_ms bigint)
-- What the table has; a text is cut before it is kept.

-- create(actor text, record_client_request_id text[], record_job_id text[], record_remembered_at_ms bigint[])
-- Adds a submit_key unless one has the same client_request_id.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
)
INSERT INTO submit_keys (client_request_id, job_id, remembered_at_ms)
SELECT given.client_request_id, given.job_id, given.remembered_at_ms
FROM actor, unnest($2::text[], $3::text[], $4::bigint[])
    AS given (client_request_id, job_id, remembered_at_ms)
-- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
ORDER BY given.client_request_id
RETURNING
    submit_keys.client_request_id,
    submit_keys.presence,
    submit_keys.job_id,
    submit_keys.remembered_at_ms;

-- create_shared(actor text, record_client_request_id text[], record_job_id text[], record_remembered_at_ms bigint[])
-- The same for several who ask at once.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
)
INSERT INTO submit_keys (client_request_id, job_id, remembered_at_ms)
SELECT given.client_request_id, given.job_id, given.remembered_at_ms
FROM actor, unnest($2::text[], $3::text[], $4::bigint[])
    AS given (client_request_id, job_id, remembered_at_ms)
-- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
ORDER BY given.client_request_id
RETURNING
    submit_keys.client_request_id,
    submit_keys.presence,
    submit_keys.job_id,
    submit_keys.remembered_at_ms;

-- begin(actor text)
-- Begins a creation that others wait for.
SELECT clock_timestamp() AS _now, set_config('app.actor', $1::text, true), pg_advisory_xact_lock(hashtext('submit_keys'));

-- insert(rows jsonb)
-- Adds what the engine has made of them.
INSERT INTO submit_keys SELECT given.* FROM jsonb_populate_recordset(NULL::submit_keys, $1::jsonb) AS given;

-- get(key text)
-- One submit_key as it is now.
SELECT
    submit_keys.client_request_id,
    submit_keys.presence,
    submit_keys.job_id,
    submit_keys.remembered_at_ms
FROM submit_keys
WHERE client_request_id = $1::text;

-- lock(keys text[])
-- Some as they are now, locked for a step that the engine takes.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        submit_keys.client_request_id,
    submit_keys.presence,
    submit_keys.job_id,
    submit_keys.remembered_at_ms
    FROM submit_keys
    WHERE client_request_id = ANY($1::text[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY submit_keys.client_request_id
    FOR NO KEY UPDATE
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- lock_free(keys text[])
-- The same for those that no other transaction has.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        submit_keys.client_request_id,
    submit_keys.presence,
    submit_keys.job_id,
    submit_keys.remembered_at_ms
    FROM submit_keys
    WHERE client_request_id = ANY($1::text[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY submit_keys.client_request_id
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
UPDATE submit_keys
SET
    presence = given.presence
FROM actor, jsonb_populate_recordset(NULL::submit_keys, $3::jsonb) AS given
WHERE submit_keys.client_request_id = given.client_request_id
RETURNING submit_keys.client_request_id;

-- update(rows jsonb)
-- Fields that no edge owns.
WITH allowed AS MATERIALIZED (
    SELECT set_config('app.actor', '', true), set_config('app.update', 'on', true)
)
UPDATE submit_keys
SET
    presence = given.presence,
    job_id = given.job_id,
    remembered_at_ms = given.remembered_at_ms
FROM allowed, jsonb_populate_recordset(NULL::submit_keys, $1::jsonb) AS given
WHERE submit_keys.client_request_id = given.client_request_id
RETURNING
    submit_keys.client_request_id,
    submit_keys.presence,
    submit_keys.job_id,
    submit_keys.remembered_at_ms;

-- find_newest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_client_request_id text, record_job_id text, record_remembered_at_ms bigint, size bigint, offset bigint)
-- A page of the listing, the newest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    submit_keys.client_request_id,
    submit_keys.presence,
    submit_keys.job_id,
    submit_keys.remembered_at_ms
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM submit_keys AS one
    WHERE one.presence = wanted.state
        AND ($2::bigint IS NULL OR one.remembered_at_ms >= $2::bigint)
        AND ($3::bigint IS NULL OR one.remembered_at_ms < $3::bigint)
        AND ($4::bigint IS NULL OR one.remembered_at_ms <= $4::bigint)
        AND ($4::bigint IS NULL OR one.remembered_at_ms <> $4::bigint OR one.client_request_id > $5::text)
        AND ($6::text IS NULL OR one.client_request_id = $6::text)
        AND ($7::text IS NULL OR one.job_id = $7::text)
        AND ($8::bigint IS NULL OR one.remembered_at_ms = $8::bigint)
    ORDER BY one.remembered_at_ms DESC, one.client_request_id
    LIMIT $9::bigint + $10::bigint
    ) AS listed
) AS submit_keys
ORDER BY submit_keys.remembered_at_ms DESC, submit_keys.client_request_id
OFFSET $10::bigint LIMIT $9::bigint;

-- find_oldest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_client_request_id text, record_job_id text, record_remembered_at_ms bigint, size bigint, offset bigint)
-- A page of the listing, the oldest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    submit_keys.client_request_id,
    submit_keys.presence,
    submit_keys.job_id,
    submit_keys.remembered_at_ms
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM submit_keys AS one
    WHERE one.presence = wanted.state
        AND ($2::bigint IS NULL OR one.remembered_at_ms >= $2::bigint)
        AND ($3::bigint IS NULL OR one.remembered_at_ms < $3::bigint)
        AND ($4::bigint IS NULL OR one.remembered_at_ms >= $4::bigint)
        AND ($4::bigint IS NULL OR one.remembered_at_ms <> $4::bigint OR one.client_request_id > $5::text)
        AND ($6::text IS NULL OR one.client_request_id = $6::text)
        AND ($7::text IS NULL OR one.job_id = $7::text)
        AND ($8::bigint IS NULL OR one.remembered_at_ms = $8::bigint)
    ORDER BY one.remembered_at_ms ASC, one.client_request_id
    LIMIT $9::bigint + $10::bigint
    ) AS listed
) AS submit_keys
ORDER BY submit_keys.remembered_at_ms ASC, submit_keys.client_request_id
OFFSET $10::bigint LIMIT $9::bigint;

-- history(key text)
-- Every state change of one submit_key, oldest first.
SELECT from_state, to_state, actor, fence, at, NULL, NULL, NULL, NULL
FROM submit_key_history
WHERE client_request_id = $1::text
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT presence, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(timestamptz 'epoch' + submit_keys.remembered_at_ms * interval '1 millisecond', timestamptz 'epoch'))), 0))::double precision
FROM submit_keys
GROUP BY presence;

-- count_since(since bigint)
-- How many there are in each state, since a time.
SELECT presence, count(*) FROM submit_keys
WHERE remembered_at_ms >= $1::bigint
GROUP BY presence;

-- delete(keys text[], states text[], actor text)
-- Deletes some, each in the state that is expected.
SELECT removed FROM unnest($1::text[], $2::text[]) AS given (key, state),
    LATERAL submit_keys_remove($3::text, given.key, given.state) AS removed;

-- purge(actor text, older_than double precision, most integer)
-- Deletes those that ended long ago, and their history.
SELECT submit_keys_purge($1::text, $2::double precision, $3::integer);
