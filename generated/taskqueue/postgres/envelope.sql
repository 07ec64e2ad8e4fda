-- Every statement that the engine sends about a envelope of taskqueue.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- columns(job_id text, presence text, terminal_status integer, runtime_ms integer, output_summary text, output_bytes bytea, checksum text, stored_at_ms bigint, stored_bytes bigint)
-- What the table has; a text is cut before it is kept.

-- create(actor text, record_job_id text[], record_terminal_status integer[], record_runtime_ms integer[], record_output_summary text[], record_output_bytes bytea[], record_checksum text[], record_stored_at_ms bigint[], record_stored_bytes bigint[])
-- Adds a envelope unless one has the same job_id.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
)
INSERT INTO envelopes (job_id, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes)
SELECT given.job_id, given.terminal_status, given.runtime_ms, given.output_summary, given.output_bytes, given.checksum, given.stored_at_ms, given.stored_bytes
FROM actor, unnest($2::text[], $3::integer[], $4::integer[], $5::text[], $6::bytea[], $7::text[], $8::bigint[], $9::bigint[])
    AS given (job_id, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes)
-- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
ORDER BY given.job_id
RETURNING
    envelopes.job_id,
    envelopes.presence,
    envelopes.terminal_status,
    envelopes.runtime_ms,
    envelopes.output_summary,
    envelopes.output_bytes,
    envelopes.checksum,
    envelopes.stored_at_ms,
    envelopes.stored_bytes;

-- create_shared(actor text, record_job_id text[], record_terminal_status integer[], record_runtime_ms integer[], record_output_summary text[], record_output_bytes bytea[], record_checksum text[], record_stored_at_ms bigint[], record_stored_bytes bigint[])
-- The same for several who ask at once.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
)
INSERT INTO envelopes (job_id, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes)
SELECT given.job_id, given.terminal_status, given.runtime_ms, given.output_summary, given.output_bytes, given.checksum, given.stored_at_ms, given.stored_bytes
FROM actor, unnest($2::text[], $3::integer[], $4::integer[], $5::text[], $6::bytea[], $7::text[], $8::bigint[], $9::bigint[])
    AS given (job_id, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes)
-- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
ORDER BY given.job_id
RETURNING
    envelopes.job_id,
    envelopes.presence,
    envelopes.terminal_status,
    envelopes.runtime_ms,
    envelopes.output_summary,
    envelopes.output_bytes,
    envelopes.checksum,
    envelopes.stored_at_ms,
    envelopes.stored_bytes;

-- begin(actor text)
-- Begins a creation that others wait for.
SELECT clock_timestamp() AS _now, set_config('app.actor', $1::text, true), pg_advisory_xact_lock(hashtext('envelopes'));

-- insert(rows jsonb)
-- Adds what the engine has made of them.
INSERT INTO envelopes SELECT given.* FROM jsonb_populate_recordset(NULL::envelopes, $1::jsonb) AS given;

-- get(key text)
-- One envelope as it is now.
SELECT
    envelopes.job_id,
    envelopes.presence,
    envelopes.terminal_status,
    envelopes.runtime_ms,
    envelopes.output_summary,
    envelopes.output_bytes,
    envelopes.checksum,
    envelopes.stored_at_ms,
    envelopes.stored_bytes
FROM envelopes
WHERE job_id = $1::text;

-- lock(keys text[])
-- Some as they are now, locked for a step that the engine takes.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        envelopes.job_id,
    envelopes.presence,
    envelopes.terminal_status,
    envelopes.runtime_ms,
    envelopes.output_summary,
    envelopes.output_bytes,
    envelopes.checksum,
    envelopes.stored_at_ms,
    envelopes.stored_bytes
    FROM envelopes
    WHERE job_id = ANY($1::text[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY envelopes.job_id
    FOR NO KEY UPDATE
)
SELECT locked.*, clock_timestamp() AS _now FROM locked;

-- lock_free(keys text[])
-- The same for those that no other transaction has.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        envelopes.job_id,
    envelopes.presence,
    envelopes.terminal_status,
    envelopes.runtime_ms,
    envelopes.output_summary,
    envelopes.output_bytes,
    envelopes.checksum,
    envelopes.stored_at_ms,
    envelopes.stored_bytes
    FROM envelopes
    WHERE job_id = ANY($1::text[])
    -- In one order everywhere, so that two who change the same ones do not wait for each other in a circle.
    ORDER BY envelopes.job_id
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
UPDATE envelopes
SET
    presence = given.presence
FROM actor, jsonb_populate_recordset(NULL::envelopes, $3::jsonb) AS given
WHERE envelopes.job_id = given.job_id
RETURNING envelopes.job_id;

-- update(rows jsonb)
-- Fields that no edge owns.
WITH allowed AS MATERIALIZED (
    SELECT set_config('app.actor', '', true), set_config('app.update', 'on', true)
)
UPDATE envelopes
SET
    presence = given.presence,
    terminal_status = given.terminal_status,
    runtime_ms = given.runtime_ms,
    output_summary = given.output_summary,
    output_bytes = given.output_bytes,
    checksum = given.checksum,
    stored_at_ms = given.stored_at_ms,
    stored_bytes = given.stored_bytes
FROM allowed, jsonb_populate_recordset(NULL::envelopes, $1::jsonb) AS given
WHERE envelopes.job_id = given.job_id
RETURNING
    envelopes.job_id,
    envelopes.presence,
    envelopes.terminal_status,
    envelopes.runtime_ms,
    envelopes.output_summary,
    envelopes.output_bytes,
    envelopes.checksum,
    envelopes.stored_at_ms,
    envelopes.stored_bytes;

-- find_newest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_job_id text, record_terminal_status integer, record_runtime_ms integer, record_output_summary text, record_checksum text, record_stored_at_ms bigint, record_stored_bytes bigint, size bigint, offset bigint)
-- A page of the listing, the newest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    envelopes.job_id,
    envelopes.presence,
    envelopes.terminal_status,
    envelopes.runtime_ms,
    envelopes.output_summary,
    envelopes.output_bytes,
    envelopes.checksum,
    envelopes.stored_at_ms,
    envelopes.stored_bytes
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM envelopes AS one
    WHERE one.presence = wanted.state
        AND ($2::bigint IS NULL OR one.stored_at_ms >= $2::bigint)
        AND ($3::bigint IS NULL OR one.stored_at_ms < $3::bigint)
        AND ($4::bigint IS NULL OR one.stored_at_ms <= $4::bigint)
        AND ($4::bigint IS NULL OR one.stored_at_ms <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::integer IS NULL OR one.terminal_status = $7::integer)
        AND ($8::integer IS NULL OR one.runtime_ms = $8::integer)
        AND ($9::text IS NULL OR one.output_summary = $9::text)
        AND ($10::text IS NULL OR one.checksum = $10::text)
        AND ($11::bigint IS NULL OR one.stored_at_ms = $11::bigint)
        AND ($12::bigint IS NULL OR one.stored_bytes = $12::bigint)
    ORDER BY one.stored_at_ms DESC, one.job_id
    LIMIT $13::bigint + $14::bigint
    ) AS listed
) AS envelopes
ORDER BY envelopes.stored_at_ms DESC, envelopes.job_id
OFFSET $14::bigint LIMIT $13::bigint;

-- find_oldest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_job_id text, record_terminal_status integer, record_runtime_ms integer, record_output_summary text, record_checksum text, record_stored_at_ms bigint, record_stored_bytes bigint, size bigint, offset bigint)
-- A page of the listing, the oldest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    envelopes.job_id,
    envelopes.presence,
    envelopes.terminal_status,
    envelopes.runtime_ms,
    envelopes.output_summary,
    envelopes.output_bytes,
    envelopes.checksum,
    envelopes.stored_at_ms,
    envelopes.stored_bytes
FROM (
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM envelopes AS one
    WHERE one.presence = wanted.state
        AND ($2::bigint IS NULL OR one.stored_at_ms >= $2::bigint)
        AND ($3::bigint IS NULL OR one.stored_at_ms < $3::bigint)
        AND ($4::bigint IS NULL OR one.stored_at_ms >= $4::bigint)
        AND ($4::bigint IS NULL OR one.stored_at_ms <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::integer IS NULL OR one.terminal_status = $7::integer)
        AND ($8::integer IS NULL OR one.runtime_ms = $8::integer)
        AND ($9::text IS NULL OR one.output_summary = $9::text)
        AND ($10::text IS NULL OR one.checksum = $10::text)
        AND ($11::bigint IS NULL OR one.stored_at_ms = $11::bigint)
        AND ($12::bigint IS NULL OR one.stored_bytes = $12::bigint)
    ORDER BY one.stored_at_ms ASC, one.job_id
    LIMIT $13::bigint + $14::bigint
    ) AS listed
) AS envelopes
ORDER BY envelopes.stored_at_ms ASC, envelopes.job_id
OFFSET $14::bigint LIMIT $13::bigint;

-- history(key text)
-- Every state change of one envelope, oldest first.
SELECT from_state, to_state, actor, fence, at, NULL, NULL, NULL, NULL
FROM envelope_history
WHERE job_id = $1::text
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT presence, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(timestamptz 'epoch' + envelopes.stored_at_ms * interval '1 millisecond', timestamptz 'epoch'))), 0))::double precision
FROM envelopes
GROUP BY presence;

-- count_since(since bigint)
-- How many there are in each state, since a time.
SELECT presence, count(*) FROM envelopes
WHERE stored_at_ms >= $1::bigint
GROUP BY presence;

-- delete(keys text[], states text[], actor text)
-- Deletes some, each in the state that is expected.
SELECT removed FROM unnest($1::text[], $2::text[]) AS given (key, state),
    LATERAL envelopes_remove($3::text, given.key, given.state) AS removed;

-- purge(actor text, older_than double precision, most integer)
-- Deletes those that ended long ago, and their history.
SELECT envelopes_purge($1::text, $2::double precision, $3::integer);
