-- Every statement that the engine sends about a entry of taskqueue.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- columns(job_id text, presence text, enqueued_at_ms bigint)
-- What the table has; a text is cut before it is kept.

-- create(actor text, record_job_id text[], record_enqueued_at_ms bigint[])
-- Adds a entry unless one has the same job_id.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
)
INSERT INTO entrys (job_id, enqueued_at_ms)
SELECT given.job_id, given.enqueued_at_ms
FROM actor, unnest($2::text[], $3::bigint[])
    AS given (job_id, enqueued_at_ms)
-- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
ORDER BY given.job_id
RETURNING
    entrys.job_id,
    entrys.presence,
    entrys.enqueued_at_ms;

-- create_shared(actor text, record_job_id text[], record_enqueued_at_ms bigint[])
-- The same for several who ask at once.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
)
INSERT INTO entrys (job_id, enqueued_at_ms)
SELECT given.job_id, given.enqueued_at_ms
FROM actor, unnest($2::text[], $3::bigint[])
    AS given (job_id, enqueued_at_ms)
-- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
ORDER BY given.job_id
RETURNING
    entrys.job_id,
    entrys.presence,
    entrys.enqueued_at_ms;

-- begin(actor text)
-- Begins a creation that others wait for.
SELECT clock_timestamp() AS _now, set_config('app.actor', $1::text, true), pg_advisory_xact_lock(hashtext('entrys'));

-- insert(rows jsonb)
-- Adds what the engine has made of them.
INSERT INTO entrys SELECT given.* FROM jsonb_populate_recordset(NULL::entrys, $1::jsonb) AS given;

-- get(key text)
-- One entry as it is now.
SELECT
    entrys.job_id,
    entrys.presence,
    entrys.enqueued_at_ms
FROM entrys
WHERE job_id = $1::text;

-- lock(keys text[])
-- Some as they are now, locked for a step that the engine takes.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        entrys.job_id,
    entrys.presence,
    entrys.enqueued_at_ms
    FROM entrys
    WHERE job_id = ANY($1::text[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY entrys.job_id
    FOR NO KEY UPDATE
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- lock_free(keys text[])
-- The same for those that no other transaction has.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        entrys.job_id,
    entrys.presence,
    entrys.enqueued_at_ms
    FROM entrys
    WHERE job_id = ANY($1::text[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY entrys.job_id
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
UPDATE entrys
SET
    presence = given.presence
FROM actor, jsonb_populate_recordset(NULL::entrys, $3::jsonb) AS given
WHERE entrys.job_id = given.job_id
RETURNING entrys.job_id;

-- update(rows jsonb)
-- Fields that no edge owns.
WITH allowed AS MATERIALIZED (
    SELECT set_config('app.actor', '', true), set_config('app.update', 'on', true)
)
UPDATE entrys
SET
    presence = given.presence,
    enqueued_at_ms = given.enqueued_at_ms
FROM allowed, jsonb_populate_recordset(NULL::entrys, $1::jsonb) AS given
WHERE entrys.job_id = given.job_id
RETURNING
    entrys.job_id,
    entrys.presence,
    entrys.enqueued_at_ms;

-- find_newest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_job_id text, record_enqueued_at_ms bigint, size bigint, offset bigint)
-- A page of the listing, the newest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    entrys.job_id,
    entrys.presence,
    entrys.enqueued_at_ms
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM entrys AS one
    WHERE one.presence = wanted.state
        AND ($2::bigint IS NULL OR one.enqueued_at_ms >= $2::bigint)
        AND ($3::bigint IS NULL OR one.enqueued_at_ms < $3::bigint)
        AND ($4::bigint IS NULL OR one.enqueued_at_ms <= $4::bigint)
        AND ($4::bigint IS NULL OR one.enqueued_at_ms <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::bigint IS NULL OR one.enqueued_at_ms = $7::bigint)
    ORDER BY one.enqueued_at_ms DESC, one.job_id
    LIMIT $8::bigint + $9::bigint
    ) AS listed
) AS entrys
ORDER BY entrys.enqueued_at_ms DESC, entrys.job_id
OFFSET $9::bigint LIMIT $8::bigint;

-- find_oldest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_job_id text, record_enqueued_at_ms bigint, size bigint, offset bigint)
-- A page of the listing, the oldest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    entrys.job_id,
    entrys.presence,
    entrys.enqueued_at_ms
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM entrys AS one
    WHERE one.presence = wanted.state
        AND ($2::bigint IS NULL OR one.enqueued_at_ms >= $2::bigint)
        AND ($3::bigint IS NULL OR one.enqueued_at_ms < $3::bigint)
        AND ($4::bigint IS NULL OR one.enqueued_at_ms >= $4::bigint)
        AND ($4::bigint IS NULL OR one.enqueued_at_ms <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::bigint IS NULL OR one.enqueued_at_ms = $7::bigint)
    ORDER BY one.enqueued_at_ms ASC, one.job_id
    LIMIT $8::bigint + $9::bigint
    ) AS listed
) AS entrys
ORDER BY entrys.enqueued_at_ms ASC, entrys.job_id
OFFSET $9::bigint LIMIT $8::bigint;

-- history(key text)
-- Every state change of one entry, oldest first.
SELECT from_state, to_state, actor, fence, at, NULL, NULL, NULL, NULL
FROM entry_history
WHERE job_id = $1::text
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT presence, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(timestamptz 'epoch' + entrys.enqueued_at_ms * interval '1 millisecond', timestamptz 'epoch'))), 0))::double precision
FROM entrys
GROUP BY presence;

-- count_since(since bigint)
-- How many there are in each state, since a time.
SELECT presence, count(*) FROM entrys
WHERE enqueued_at_ms >= $1::bigint
GROUP BY presence;

-- delete(keys text[], states text[], actor text)
-- Deletes some, each in the state that is expected.
SELECT removed FROM unnest($1::text[], $2::text[]) AS given (key, state),
    LATERAL entrys_remove($3::text, given.key, given.state) AS removed;

-- purge(actor text, older_than double precision, most integer)
-- Deletes those that ended long ago, and their history.
SELECT entrys_purge($1::text, $2::double precision, $3::integer);
