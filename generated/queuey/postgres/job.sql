-- Every statement that the engine sends about a job of queuey.
-- Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
--
-- The line above each statement has its name and what it takes, in order. Names in capitals are variables of
-- the environment; `record_…` is a field of the record, and `given_…` is what an edge takes. Rows that are asked for by key are found by key: their state is compared by `IS TRUE`, which
-- no index serves, so that no plan goes through all that are or were in that state instead. Whatever depends on
-- time goes by clock_timestamp(), because now() stands still within a transaction.

-- columns(job_id text, binary_addr text, input_addr text, created_at bigint, updated_at bigint, completed_at bigint, status text, run_attempts integer, runner_id text, output_addr text, idempotency_key text, stderr_addr text, exit_code integer, reason text, releases integer)
-- What the table has; a text is cut before it is kept.
-- cuts reason to 2000 bytes

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
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases
FROM jobs
WHERE jobs.idempotency_key = ANY($1::text[]) AND jobs.idempotency_key <> '';

-- get(key text)
-- One job as it is now.
SELECT
    jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases
FROM jobs
WHERE job_id = $1::text;

-- lock(keys text[])
-- Some as they are now, locked for a step that the engine takes.
-- The clock is read when a row is locked, and not before that was waited for.
WITH locked AS MATERIALIZED (
    SELECT
        jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases
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
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases
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
    updated_at = given.updated_at,
    completed_at = given.completed_at,
    status = given.status,
    run_attempts = given.run_attempts,
    runner_id = given.runner_id,
    output_addr = given.output_addr,
    stderr_addr = given.stderr_addr,
    exit_code = given.exit_code,
    reason = given.reason,
    releases = given.releases
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
    binary_addr = given.binary_addr,
    input_addr = given.input_addr,
    created_at = given.created_at,
    updated_at = given.updated_at,
    completed_at = given.completed_at,
    status = given.status,
    run_attempts = given.run_attempts,
    runner_id = given.runner_id,
    output_addr = given.output_addr,
    idempotency_key = given.idempotency_key,
    stderr_addr = given.stderr_addr,
    exit_code = given.exit_code,
    reason = given.reason,
    releases = given.releases
FROM allowed, jsonb_populate_recordset(NULL::jobs, $1::jsonb) AS given
WHERE jobs.job_id = given.job_id
RETURNING
    jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases;

-- due_abandon(ABANDONED_AGE double precision, skip text[], most integer)
-- Which are due, longest overdue first.
SELECT
    jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases, clock_timestamp() AS _now
FROM jobs
WHERE jobs.status IN ('ACTIVE')
    AND jobs.updated_at < (SELECT ceil(extract(epoch FROM clock_timestamp() - $1::double precision * interval '1 second') * 1000)::bigint)
    AND jobs.job_id <> ALL($2::text[])
ORDER BY jobs.updated_at, jobs.job_id
LIMIT $3::integer
FOR NO KEY UPDATE OF jobs SKIP LOCKED;

-- claim(actor text, free bigint, record_job_id text, record_binary_addr text, record_input_addr text, absent text[], record_created_at bigint, record_updated_at bigint, record_completed_at bigint, record_run_attempts integer, record_runner_id text, record_output_addr text, record_idempotency_key text, record_stderr_addr text, record_exit_code integer, record_reason text, record_releases integer, owner text)
-- Claims the next, as many as are asked for. (spec/queuey/lifecycle.yaml: job.claim)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
next1 AS MATERIALIZED (
    SELECT jobs.ctid AS place, 1 AS rank, jobs.created_at AS age, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond' AS since
    FROM jobs
    WHERE jobs.status = 'PENDING'
        AND ($3::text IS NULL OR jobs.job_id = $3::text)
        AND ($4::text IS NULL OR jobs.binary_addr = $4::text)
        AND ($5::text IS NULL OR jobs.input_addr = $5::text)
        AND (jobs.input_addr IS NULL OR 'input_addr' <> ALL($6::text[]))
        AND ($7::bigint IS NULL OR jobs.created_at = $7::bigint)
        AND ($8::bigint IS NULL OR jobs.updated_at = $8::bigint)
        AND ($9::bigint IS NULL OR jobs.completed_at = $9::bigint)
        AND (jobs.completed_at IS NULL OR 'completed_at' <> ALL($6::text[]))
        AND ($10::integer IS NULL OR jobs.run_attempts = $10::integer)
        AND ($11::text IS NULL OR jobs.runner_id = $11::text)
        AND (jobs.runner_id IS NULL OR 'runner_id' <> ALL($6::text[]))
        AND ($12::text IS NULL OR jobs.output_addr = $12::text)
        AND (jobs.output_addr IS NULL OR 'output_addr' <> ALL($6::text[]))
        AND ($13::text IS NULL OR jobs.idempotency_key = $13::text)
        AND (jobs.idempotency_key IS NULL OR 'idempotency_key' <> ALL($6::text[]))
        AND ($14::text IS NULL OR jobs.stderr_addr = $14::text)
        AND (jobs.stderr_addr IS NULL OR 'stderr_addr' <> ALL($6::text[]))
        AND ($15::integer IS NULL OR jobs.exit_code = $15::integer)
        AND (jobs.exit_code IS NULL OR 'exit_code' <> ALL($6::text[]))
        AND ($16::text IS NULL OR jobs.reason = $16::text)
        AND (jobs.reason IS NULL OR 'reason' <> ALL($6::text[]))
        AND ($17::integer IS NULL OR jobs.releases = $17::integer)
    ORDER BY jobs.created_at, jobs.job_id
    LIMIT $2::bigint
    FOR UPDATE OF jobs SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1
),
moved AS MATERIALIZED (
    SELECT next.*, $18::text AS owner FROM next
)
UPDATE jobs
SET
    status = 'ACTIVE',
    runner_id = moved.owner,
    run_attempts = jobs.run_attempts + 1,
    updated_at = floor(extract(epoch FROM moved.moment) * 1000)::bigint
FROM moved, actor
WHERE jobs.ctid = moved.place
RETURNING
    jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases,
    moved.rank AS _rank, moved.age AS _age, extract(epoch FROM moved.moment - moved.since)::double precision AS _waited;

-- backlog()
-- How many can be claimed, and the age of the oldest.
SELECT 0 AS rank, count(*) AS entities, greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch'))), 0))::double precision AS oldest
FROM jobs
WHERE jobs.status = 'PENDING' AND true;

-- settle_release(actor text, keys text[], owners text[], fences bigint[])
-- The runner is stopped and gives the job back undone. That is no failure, so its taking does not count either. Its holder alone may. (spec/queuey/lifecycle.yaml: job.release)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'release', true)
),
given AS MATERIALIZED (
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[]) AS given (key, owner, fence)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    status = 'PENDING',
    runner_id = NULL,
    releases = jobs.releases + 1,
    updated_at = floor(extract(epoch FROM held.moment) * 1000)::bigint
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.run_attempts;

-- exchange_release(actor text, keys text[], owners text[], fences bigint[], free bigint, record_job_id text, record_binary_addr text, record_input_addr text, absent text[], record_created_at bigint, record_updated_at bigint, record_completed_at bigint, record_run_attempts integer, record_runner_id text, record_output_addr text, record_idempotency_key text, record_stderr_addr text, record_exit_code integer, record_reason text, record_releases integer, owner text)
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
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[]) AS given (key, owner, fence)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
),
next1 AS MATERIALIZED (
    SELECT jobs.ctid AS place, 1 AS rank, jobs.created_at AS age, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond' AS since
    FROM jobs
    WHERE jobs.status = 'PENDING'
        AND ($6::text IS NULL OR jobs.job_id = $6::text)
        AND ($7::text IS NULL OR jobs.binary_addr = $7::text)
        AND ($8::text IS NULL OR jobs.input_addr = $8::text)
        AND (jobs.input_addr IS NULL OR 'input_addr' <> ALL($9::text[]))
        AND ($10::bigint IS NULL OR jobs.created_at = $10::bigint)
        AND ($11::bigint IS NULL OR jobs.updated_at = $11::bigint)
        AND ($12::bigint IS NULL OR jobs.completed_at = $12::bigint)
        AND (jobs.completed_at IS NULL OR 'completed_at' <> ALL($9::text[]))
        AND ($13::integer IS NULL OR jobs.run_attempts = $13::integer)
        AND ($14::text IS NULL OR jobs.runner_id = $14::text)
        AND (jobs.runner_id IS NULL OR 'runner_id' <> ALL($9::text[]))
        AND ($15::text IS NULL OR jobs.output_addr = $15::text)
        AND (jobs.output_addr IS NULL OR 'output_addr' <> ALL($9::text[]))
        AND ($16::text IS NULL OR jobs.idempotency_key = $16::text)
        AND (jobs.idempotency_key IS NULL OR 'idempotency_key' <> ALL($9::text[]))
        AND ($17::text IS NULL OR jobs.stderr_addr = $17::text)
        AND (jobs.stderr_addr IS NULL OR 'stderr_addr' <> ALL($9::text[]))
        AND ($18::integer IS NULL OR jobs.exit_code = $18::integer)
        AND (jobs.exit_code IS NULL OR 'exit_code' <> ALL($9::text[]))
        AND ($19::text IS NULL OR jobs.reason = $19::text)
        AND (jobs.reason IS NULL OR 'reason' <> ALL($9::text[]))
        AND ($20::integer IS NULL OR jobs.releases = $20::integer)
    ORDER BY jobs.created_at, jobs.job_id
    LIMIT $5::bigint + (SELECT count(*) FROM held)
    FOR UPDATE OF jobs SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1
),
moved AS MATERIALIZED (
    SELECT true AS settles, place, 0 AS rank, NULL::bigint AS age, moment, NULL::text AS owner, NULL::timestamptz AS since FROM held
    UNION ALL
    SELECT false, place, rank, age, moment, $21::text, since FROM next
)
UPDATE jobs
SET
    status = CASE WHEN moved.settles THEN 'PENDING' ELSE 'ACTIVE' END,
    runner_id = CASE WHEN moved.settles THEN NULL ELSE moved.owner END,
    releases = CASE WHEN moved.settles THEN jobs.releases + 1 ELSE jobs.releases END,
    updated_at = floor(extract(epoch FROM moved.moment) * 1000)::bigint,
    run_attempts = CASE WHEN moved.settles THEN jobs.run_attempts ELSE jobs.run_attempts + 1 END
FROM moved, actor
WHERE jobs.ctid = moved.place
RETURNING
    jobs.job_id AS job_id,
    CASE WHEN NOT moved.settles THEN jobs.binary_addr END AS binary_addr,
    CASE WHEN NOT moved.settles THEN jobs.input_addr END AS input_addr,
    CASE WHEN NOT moved.settles THEN jobs.created_at END AS created_at,
    CASE WHEN NOT moved.settles THEN jobs.updated_at END AS updated_at,
    CASE WHEN NOT moved.settles THEN jobs.completed_at END AS completed_at,
    CASE WHEN NOT moved.settles THEN jobs.status END AS status,
    jobs.run_attempts AS run_attempts,
    CASE WHEN NOT moved.settles THEN jobs.runner_id END AS runner_id,
    CASE WHEN NOT moved.settles THEN jobs.output_addr END AS output_addr,
    CASE WHEN NOT moved.settles THEN jobs.idempotency_key END AS idempotency_key,
    CASE WHEN NOT moved.settles THEN jobs.stderr_addr END AS stderr_addr,
    CASE WHEN NOT moved.settles THEN jobs.exit_code END AS exit_code,
    CASE WHEN NOT moved.settles THEN jobs.reason END AS reason,
    CASE WHEN NOT moved.settles THEN jobs.releases END AS releases,
    moved.rank AS _rank, moved.age AS _age, CASE WHEN NOT moved.settles THEN extract(epoch FROM moved.moment - moved.since)::double precision END AS _waited;

-- settle_complete(actor text, keys text[], owners text[], fences bigint[], given_output_addr text[], given_stderr_addr text[], given_exit_code integer[], given_reason text[])
-- The runner says that the binary ran to its end. Its holder alone may. (spec/queuey/lifecycle.yaml: job.complete)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::integer[], $8::text[]) AS given (key, owner, fence, given_output_addr, given_stderr_addr, given_exit_code, given_reason)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, given.given_output_addr, given.given_stderr_addr, given.given_exit_code, given.given_reason
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    status = 'COMPLETED',
    updated_at = floor(extract(epoch FROM held.moment) * 1000)::bigint,
    completed_at = floor(extract(epoch FROM held.moment) * 1000)::bigint,
    output_addr = held.given_output_addr,
    stderr_addr = held.given_stderr_addr,
    exit_code = held.given_exit_code,
    reason = held.given_reason
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.run_attempts;

-- exchange_complete(actor text, keys text[], owners text[], fences bigint[], given_output_addr text[], given_stderr_addr text[], given_exit_code integer[], given_reason text[], free bigint, record_job_id text, record_binary_addr text, record_input_addr text, absent text[], record_created_at bigint, record_updated_at bigint, record_completed_at bigint, record_run_attempts integer, record_runner_id text, record_output_addr text, record_idempotency_key text, record_stderr_addr text, record_exit_code integer, record_reason text, record_releases integer, owner text)
-- The same, and claims one for each that it settled and some more, all in one commit.
-- One update for both, because what a statement pays for each update of a table with guards is more than what
-- it pays for some rows. A row that somebody else has is waited for so shortly that it need not be locked before.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
),
given AS MATERIALIZED (
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::integer[], $8::text[]) AS given (key, owner, fence, given_output_addr, given_stderr_addr, given_exit_code, given_reason)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, given.given_output_addr, given.given_stderr_addr, given.given_exit_code, given.given_reason
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
),
next1 AS MATERIALIZED (
    SELECT jobs.ctid AS place, 1 AS rank, jobs.created_at AS age, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond' AS since
    FROM jobs
    WHERE jobs.status = 'PENDING'
        AND ($10::text IS NULL OR jobs.job_id = $10::text)
        AND ($11::text IS NULL OR jobs.binary_addr = $11::text)
        AND ($12::text IS NULL OR jobs.input_addr = $12::text)
        AND (jobs.input_addr IS NULL OR 'input_addr' <> ALL($13::text[]))
        AND ($14::bigint IS NULL OR jobs.created_at = $14::bigint)
        AND ($15::bigint IS NULL OR jobs.updated_at = $15::bigint)
        AND ($16::bigint IS NULL OR jobs.completed_at = $16::bigint)
        AND (jobs.completed_at IS NULL OR 'completed_at' <> ALL($13::text[]))
        AND ($17::integer IS NULL OR jobs.run_attempts = $17::integer)
        AND ($18::text IS NULL OR jobs.runner_id = $18::text)
        AND (jobs.runner_id IS NULL OR 'runner_id' <> ALL($13::text[]))
        AND ($19::text IS NULL OR jobs.output_addr = $19::text)
        AND (jobs.output_addr IS NULL OR 'output_addr' <> ALL($13::text[]))
        AND ($20::text IS NULL OR jobs.idempotency_key = $20::text)
        AND (jobs.idempotency_key IS NULL OR 'idempotency_key' <> ALL($13::text[]))
        AND ($21::text IS NULL OR jobs.stderr_addr = $21::text)
        AND (jobs.stderr_addr IS NULL OR 'stderr_addr' <> ALL($13::text[]))
        AND ($22::integer IS NULL OR jobs.exit_code = $22::integer)
        AND (jobs.exit_code IS NULL OR 'exit_code' <> ALL($13::text[]))
        AND ($23::text IS NULL OR jobs.reason = $23::text)
        AND (jobs.reason IS NULL OR 'reason' <> ALL($13::text[]))
        AND ($24::integer IS NULL OR jobs.releases = $24::integer)
    ORDER BY jobs.created_at, jobs.job_id
    LIMIT $9::bigint + (SELECT count(*) FROM held)
    FOR UPDATE OF jobs SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1
),
moved AS MATERIALIZED (
    SELECT true AS settles, place, 0 AS rank, NULL::bigint AS age, moment, NULL::text AS owner, NULL::timestamptz AS since, given_output_addr, given_stderr_addr, given_exit_code, given_reason FROM held
    UNION ALL
    SELECT false, place, rank, age, moment, $25::text, since, NULL::text, NULL::text, NULL::integer, NULL::text FROM next
)
UPDATE jobs
SET
    status = CASE WHEN moved.settles THEN 'COMPLETED' ELSE 'ACTIVE' END,
    updated_at = floor(extract(epoch FROM moved.moment) * 1000)::bigint,
    completed_at = CASE WHEN moved.settles THEN floor(extract(epoch FROM moved.moment) * 1000)::bigint ELSE jobs.completed_at END,
    output_addr = CASE WHEN moved.settles THEN moved.given_output_addr ELSE jobs.output_addr END,
    stderr_addr = CASE WHEN moved.settles THEN moved.given_stderr_addr ELSE jobs.stderr_addr END,
    exit_code = CASE WHEN moved.settles THEN moved.given_exit_code ELSE jobs.exit_code END,
    reason = CASE WHEN moved.settles THEN moved.given_reason ELSE jobs.reason END,
    runner_id = CASE WHEN moved.settles THEN jobs.runner_id ELSE moved.owner END,
    run_attempts = CASE WHEN moved.settles THEN jobs.run_attempts ELSE jobs.run_attempts + 1 END
FROM moved, actor
WHERE jobs.ctid = moved.place
RETURNING
    jobs.job_id AS job_id,
    CASE WHEN NOT moved.settles THEN jobs.binary_addr END AS binary_addr,
    CASE WHEN NOT moved.settles THEN jobs.input_addr END AS input_addr,
    CASE WHEN NOT moved.settles THEN jobs.created_at END AS created_at,
    CASE WHEN NOT moved.settles THEN jobs.updated_at END AS updated_at,
    CASE WHEN NOT moved.settles THEN jobs.completed_at END AS completed_at,
    CASE WHEN NOT moved.settles THEN jobs.status END AS status,
    jobs.run_attempts AS run_attempts,
    CASE WHEN NOT moved.settles THEN jobs.runner_id END AS runner_id,
    CASE WHEN NOT moved.settles THEN jobs.output_addr END AS output_addr,
    CASE WHEN NOT moved.settles THEN jobs.idempotency_key END AS idempotency_key,
    CASE WHEN NOT moved.settles THEN jobs.stderr_addr END AS stderr_addr,
    CASE WHEN NOT moved.settles THEN jobs.exit_code END AS exit_code,
    CASE WHEN NOT moved.settles THEN jobs.reason END AS reason,
    CASE WHEN NOT moved.settles THEN jobs.releases END AS releases,
    moved.rank AS _rank, moved.age AS _age, CASE WHEN NOT moved.settles THEN extract(epoch FROM moved.moment - moved.since)::double precision END AS _waited;

-- settle_fail(actor text, keys text[], owners text[], fences bigint[], given_output_addr text[], given_stderr_addr text[], given_exit_code integer[], given_reason text[])
-- The runner says that the binary failed, or a client no longer wants it. Its holder alone may. (spec/queuey/lifecycle.yaml: job.fail)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'fail', true)
),
given AS MATERIALIZED (
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::integer[], $8::text[]) AS given (key, owner, fence, given_output_addr, given_stderr_addr, given_exit_code, given_reason)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, given.given_output_addr, given.given_stderr_addr, given.given_exit_code, given.given_reason
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    status = 'FAILED',
    updated_at = floor(extract(epoch FROM held.moment) * 1000)::bigint,
    completed_at = floor(extract(epoch FROM held.moment) * 1000)::bigint,
    output_addr = held.given_output_addr,
    stderr_addr = held.given_stderr_addr,
    exit_code = held.given_exit_code,
    reason = held.given_reason
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.run_attempts;

-- exchange_fail(actor text, keys text[], owners text[], fences bigint[], given_output_addr text[], given_stderr_addr text[], given_exit_code integer[], given_reason text[], free bigint, record_job_id text, record_binary_addr text, record_input_addr text, absent text[], record_created_at bigint, record_updated_at bigint, record_completed_at bigint, record_run_attempts integer, record_runner_id text, record_output_addr text, record_idempotency_key text, record_stderr_addr text, record_exit_code integer, record_reason text, record_releases integer, owner text)
-- The same, and claims one for each that it settled and some more, all in one commit.
-- One update for both, because what a statement pays for each update of a table with guards is more than what
-- it pays for some rows. A row that somebody else has is waited for so shortly that it need not be locked before.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'fail', true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
),
given AS MATERIALIZED (
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::integer[], $8::text[]) AS given (key, owner, fence, given_output_addr, given_stderr_addr, given_exit_code, given_reason)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, given.given_output_addr, given.given_stderr_addr, given.given_exit_code, given.given_reason
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
),
next1 AS MATERIALIZED (
    SELECT jobs.ctid AS place, 1 AS rank, jobs.created_at AS age, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond' AS since
    FROM jobs
    WHERE jobs.status = 'PENDING'
        AND ($10::text IS NULL OR jobs.job_id = $10::text)
        AND ($11::text IS NULL OR jobs.binary_addr = $11::text)
        AND ($12::text IS NULL OR jobs.input_addr = $12::text)
        AND (jobs.input_addr IS NULL OR 'input_addr' <> ALL($13::text[]))
        AND ($14::bigint IS NULL OR jobs.created_at = $14::bigint)
        AND ($15::bigint IS NULL OR jobs.updated_at = $15::bigint)
        AND ($16::bigint IS NULL OR jobs.completed_at = $16::bigint)
        AND (jobs.completed_at IS NULL OR 'completed_at' <> ALL($13::text[]))
        AND ($17::integer IS NULL OR jobs.run_attempts = $17::integer)
        AND ($18::text IS NULL OR jobs.runner_id = $18::text)
        AND (jobs.runner_id IS NULL OR 'runner_id' <> ALL($13::text[]))
        AND ($19::text IS NULL OR jobs.output_addr = $19::text)
        AND (jobs.output_addr IS NULL OR 'output_addr' <> ALL($13::text[]))
        AND ($20::text IS NULL OR jobs.idempotency_key = $20::text)
        AND (jobs.idempotency_key IS NULL OR 'idempotency_key' <> ALL($13::text[]))
        AND ($21::text IS NULL OR jobs.stderr_addr = $21::text)
        AND (jobs.stderr_addr IS NULL OR 'stderr_addr' <> ALL($13::text[]))
        AND ($22::integer IS NULL OR jobs.exit_code = $22::integer)
        AND (jobs.exit_code IS NULL OR 'exit_code' <> ALL($13::text[]))
        AND ($23::text IS NULL OR jobs.reason = $23::text)
        AND (jobs.reason IS NULL OR 'reason' <> ALL($13::text[]))
        AND ($24::integer IS NULL OR jobs.releases = $24::integer)
    ORDER BY jobs.created_at, jobs.job_id
    LIMIT $9::bigint + (SELECT count(*) FROM held)
    FOR UPDATE OF jobs SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1
),
moved AS MATERIALIZED (
    SELECT true AS settles, place, 0 AS rank, NULL::bigint AS age, moment, NULL::text AS owner, NULL::timestamptz AS since, given_output_addr, given_stderr_addr, given_exit_code, given_reason FROM held
    UNION ALL
    SELECT false, place, rank, age, moment, $25::text, since, NULL::text, NULL::text, NULL::integer, NULL::text FROM next
)
UPDATE jobs
SET
    status = CASE WHEN moved.settles THEN 'FAILED' ELSE 'ACTIVE' END,
    updated_at = floor(extract(epoch FROM moved.moment) * 1000)::bigint,
    completed_at = CASE WHEN moved.settles THEN floor(extract(epoch FROM moved.moment) * 1000)::bigint ELSE jobs.completed_at END,
    output_addr = CASE WHEN moved.settles THEN moved.given_output_addr ELSE jobs.output_addr END,
    stderr_addr = CASE WHEN moved.settles THEN moved.given_stderr_addr ELSE jobs.stderr_addr END,
    exit_code = CASE WHEN moved.settles THEN moved.given_exit_code ELSE jobs.exit_code END,
    reason = CASE WHEN moved.settles THEN moved.given_reason ELSE jobs.reason END,
    runner_id = CASE WHEN moved.settles THEN jobs.runner_id ELSE moved.owner END,
    run_attempts = CASE WHEN moved.settles THEN jobs.run_attempts ELSE jobs.run_attempts + 1 END
FROM moved, actor
WHERE jobs.ctid = moved.place
RETURNING
    jobs.job_id AS job_id,
    CASE WHEN NOT moved.settles THEN jobs.binary_addr END AS binary_addr,
    CASE WHEN NOT moved.settles THEN jobs.input_addr END AS input_addr,
    CASE WHEN NOT moved.settles THEN jobs.created_at END AS created_at,
    CASE WHEN NOT moved.settles THEN jobs.updated_at END AS updated_at,
    CASE WHEN NOT moved.settles THEN jobs.completed_at END AS completed_at,
    CASE WHEN NOT moved.settles THEN jobs.status END AS status,
    jobs.run_attempts AS run_attempts,
    CASE WHEN NOT moved.settles THEN jobs.runner_id END AS runner_id,
    CASE WHEN NOT moved.settles THEN jobs.output_addr END AS output_addr,
    CASE WHEN NOT moved.settles THEN jobs.idempotency_key END AS idempotency_key,
    CASE WHEN NOT moved.settles THEN jobs.stderr_addr END AS stderr_addr,
    CASE WHEN NOT moved.settles THEN jobs.exit_code END AS exit_code,
    CASE WHEN NOT moved.settles THEN jobs.reason END AS reason,
    CASE WHEN NOT moved.settles THEN jobs.releases END AS releases,
    moved.rank AS _rank, moved.age AS _age, CASE WHEN NOT moved.settles THEN extract(epoch FROM moved.moment - moved.since)::double precision END AS _waited;

-- settle_write_off(actor text, keys text[], owners text[], fences bigint[], given_reason text[])
-- It was abandoned as often as it may be. Its holder alone may. (spec/queuey/lifecycle.yaml: job.write_off)
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'write_off', true)
),
given AS MATERIALIZED (
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) AS given (key, owner, fence, given_reason)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, given.given_reason
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    status = 'FAILED',
    run_attempts = jobs.run_attempts + 1,
    updated_at = floor(extract(epoch FROM held.moment) * 1000)::bigint,
    reason = held.given_reason,
    runner_id = NULL
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING jobs.job_id, jobs.run_attempts;

-- exchange_write_off(actor text, keys text[], owners text[], fences bigint[], given_reason text[], free bigint, record_job_id text, record_binary_addr text, record_input_addr text, absent text[], record_created_at bigint, record_updated_at bigint, record_completed_at bigint, record_run_attempts integer, record_runner_id text, record_output_addr text, record_idempotency_key text, record_stderr_addr text, record_exit_code integer, record_reason text, record_releases integer, owner text)
-- The same, and claims one for each that it settled and some more, all in one commit.
-- One update for both, because what a statement pays for each update of a table with guards is more than what
-- it pays for some rows. A row that somebody else has is waited for so shortly that it need not be locked before.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true),
    -- Another edge connects the same states, so that guards and history are told which one is taken.
    set_config('app.edge', 'write_off', true),
    -- What another transaction is about to add is not waited for here: all who share this would wait for it.
    set_config('lock_timeout', '50ms', true)
),
given AS MATERIALIZED (
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) AS given (key, owner, fence, given_reason)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, given.given_reason
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
),
next1 AS MATERIALIZED (
    SELECT jobs.ctid AS place, 1 AS rank, jobs.created_at AS age, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment, timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond' AS since
    FROM jobs
    WHERE jobs.status = 'PENDING'
        AND ($7::text IS NULL OR jobs.job_id = $7::text)
        AND ($8::text IS NULL OR jobs.binary_addr = $8::text)
        AND ($9::text IS NULL OR jobs.input_addr = $9::text)
        AND (jobs.input_addr IS NULL OR 'input_addr' <> ALL($10::text[]))
        AND ($11::bigint IS NULL OR jobs.created_at = $11::bigint)
        AND ($12::bigint IS NULL OR jobs.updated_at = $12::bigint)
        AND ($13::bigint IS NULL OR jobs.completed_at = $13::bigint)
        AND (jobs.completed_at IS NULL OR 'completed_at' <> ALL($10::text[]))
        AND ($14::integer IS NULL OR jobs.run_attempts = $14::integer)
        AND ($15::text IS NULL OR jobs.runner_id = $15::text)
        AND (jobs.runner_id IS NULL OR 'runner_id' <> ALL($10::text[]))
        AND ($16::text IS NULL OR jobs.output_addr = $16::text)
        AND (jobs.output_addr IS NULL OR 'output_addr' <> ALL($10::text[]))
        AND ($17::text IS NULL OR jobs.idempotency_key = $17::text)
        AND (jobs.idempotency_key IS NULL OR 'idempotency_key' <> ALL($10::text[]))
        AND ($18::text IS NULL OR jobs.stderr_addr = $18::text)
        AND (jobs.stderr_addr IS NULL OR 'stderr_addr' <> ALL($10::text[]))
        AND ($19::integer IS NULL OR jobs.exit_code = $19::integer)
        AND (jobs.exit_code IS NULL OR 'exit_code' <> ALL($10::text[]))
        AND ($20::text IS NULL OR jobs.reason = $20::text)
        AND (jobs.reason IS NULL OR 'reason' <> ALL($10::text[]))
        AND ($21::integer IS NULL OR jobs.releases = $21::integer)
    ORDER BY jobs.created_at, jobs.job_id
    LIMIT $6::bigint + (SELECT count(*) FROM held)
    FOR UPDATE OF jobs SKIP LOCKED
),
next AS MATERIALIZED (
    SELECT * FROM next1
),
moved AS MATERIALIZED (
    SELECT true AS settles, place, 0 AS rank, NULL::bigint AS age, moment, NULL::text AS owner, NULL::timestamptz AS since, given_reason FROM held
    UNION ALL
    SELECT false, place, rank, age, moment, $22::text, since, NULL::text FROM next
)
UPDATE jobs
SET
    status = CASE WHEN moved.settles THEN 'FAILED' ELSE 'ACTIVE' END,
    run_attempts = jobs.run_attempts + 1,
    updated_at = floor(extract(epoch FROM moved.moment) * 1000)::bigint,
    reason = CASE WHEN moved.settles THEN moved.given_reason ELSE jobs.reason END,
    runner_id = CASE WHEN moved.settles THEN NULL ELSE moved.owner END
FROM moved, actor
WHERE jobs.ctid = moved.place
RETURNING
    jobs.job_id AS job_id,
    CASE WHEN NOT moved.settles THEN jobs.binary_addr END AS binary_addr,
    CASE WHEN NOT moved.settles THEN jobs.input_addr END AS input_addr,
    CASE WHEN NOT moved.settles THEN jobs.created_at END AS created_at,
    CASE WHEN NOT moved.settles THEN jobs.updated_at END AS updated_at,
    CASE WHEN NOT moved.settles THEN jobs.completed_at END AS completed_at,
    CASE WHEN NOT moved.settles THEN jobs.status END AS status,
    jobs.run_attempts AS run_attempts,
    CASE WHEN NOT moved.settles THEN jobs.runner_id END AS runner_id,
    CASE WHEN NOT moved.settles THEN jobs.output_addr END AS output_addr,
    CASE WHEN NOT moved.settles THEN jobs.idempotency_key END AS idempotency_key,
    CASE WHEN NOT moved.settles THEN jobs.stderr_addr END AS stderr_addr,
    CASE WHEN NOT moved.settles THEN jobs.exit_code END AS exit_code,
    CASE WHEN NOT moved.settles THEN jobs.reason END AS reason,
    CASE WHEN NOT moved.settles THEN jobs.releases END AS releases,
    moved.rank AS _rank, moved.age AS _age, CASE WHEN NOT moved.settles THEN extract(epoch FROM moved.moment - moved.since)::double precision END AS _waited;

-- renew(actor text, keys text[], owners text[], fences bigint[])
-- Lets leases begin anew that have not ended.
WITH actor AS MATERIALIZED (
    SELECT set_config('app.actor', $1::text, true)
),
given AS MATERIALIZED (
    SELECT *, 'ACTIVE' AS state
    FROM unnest($2::text[], $3::text[], $4::bigint[]) AS given (key, owner, fence)
),
held AS MATERIALIZED (
    SELECT jobs.ctid AS place, greatest(date_trunc('milliseconds', clock_timestamp()), timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch' + jobs.updated_at * interval '1 millisecond', timestamptz 'epoch' + jobs.completed_at * interval '1 millisecond') AS moment
    FROM given JOIN jobs ON jobs.job_id = given.key
    WHERE (jobs.status = given.state) IS TRUE
        -- An empty owner and a fence of 0 are not compared.
        AND (given.owner = '' OR jobs.runner_id = given.owner)
        AND (given.fence = 0 OR jobs.run_attempts = given.fence)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET
    updated_at = floor(extract(epoch FROM held.moment) * 1000)::bigint
FROM held, actor
WHERE jobs.ctid = held.place
RETURNING
    jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases;

-- holds(keys text[])
-- Some as they are, to explain what was not written.
SELECT
    jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases, clock_timestamp() AS _now
FROM jobs
WHERE job_id = ANY($1::text[]);

-- find_newest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_job_id text, record_binary_addr text, record_input_addr text, absent text[], record_created_at bigint, record_updated_at bigint, record_completed_at bigint, record_run_attempts integer, record_runner_id text, record_output_addr text, record_idempotency_key text, record_stderr_addr text, record_exit_code integer, record_reason text, record_releases integer, size bigint, offset bigint)
-- A page of the listing, the newest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases
FROM (
    (SELECT * FROM jobs AS one
    WHERE one.status = 'PENDING' AND 'PENDING' = ANY($1::text[])
        AND ($2::bigint IS NULL OR one.created_at >= $2::bigint)
        AND ($3::bigint IS NULL OR one.created_at < $3::bigint)
        AND ($4::bigint IS NULL OR one.created_at <= $4::bigint)
        AND ($4::bigint IS NULL OR one.created_at <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::text IS NULL OR one.binary_addr = $7::text)
        AND ($8::text IS NULL OR one.input_addr = $8::text)
        AND (one.input_addr IS NULL OR 'input_addr' <> ALL($9::text[]))
        AND ($10::bigint IS NULL OR one.created_at = $10::bigint)
        AND ($11::bigint IS NULL OR one.updated_at = $11::bigint)
        AND ($12::bigint IS NULL OR one.completed_at = $12::bigint)
        AND (one.completed_at IS NULL OR 'completed_at' <> ALL($9::text[]))
        AND ($13::integer IS NULL OR one.run_attempts = $13::integer)
        AND ($14::text IS NULL OR one.runner_id = $14::text)
        AND (one.runner_id IS NULL OR 'runner_id' <> ALL($9::text[]))
        AND ($15::text IS NULL OR one.output_addr = $15::text)
        AND (one.output_addr IS NULL OR 'output_addr' <> ALL($9::text[]))
        AND ($16::text IS NULL OR one.idempotency_key = $16::text)
        AND (one.idempotency_key IS NULL OR 'idempotency_key' <> ALL($9::text[]))
        AND ($17::text IS NULL OR one.stderr_addr = $17::text)
        AND (one.stderr_addr IS NULL OR 'stderr_addr' <> ALL($9::text[]))
        AND ($18::integer IS NULL OR one.exit_code = $18::integer)
        AND (one.exit_code IS NULL OR 'exit_code' <> ALL($9::text[]))
        AND ($19::text IS NULL OR one.reason = $19::text)
        AND (one.reason IS NULL OR 'reason' <> ALL($9::text[]))
        AND ($20::integer IS NULL OR one.releases = $20::integer)
    ORDER BY one.created_at DESC, one.job_id
    LIMIT $21::bigint + $22::bigint
    )
    UNION ALL
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM jobs AS one
    WHERE one.status = wanted.state
        AND one.status <> 'PENDING'
        AND ($2::bigint IS NULL OR one.created_at >= $2::bigint)
        AND ($3::bigint IS NULL OR one.created_at < $3::bigint)
        AND ($4::bigint IS NULL OR one.created_at <= $4::bigint)
        AND ($4::bigint IS NULL OR one.created_at <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::text IS NULL OR one.binary_addr = $7::text)
        AND ($8::text IS NULL OR one.input_addr = $8::text)
        AND (one.input_addr IS NULL OR 'input_addr' <> ALL($9::text[]))
        AND ($10::bigint IS NULL OR one.created_at = $10::bigint)
        AND ($11::bigint IS NULL OR one.updated_at = $11::bigint)
        AND ($12::bigint IS NULL OR one.completed_at = $12::bigint)
        AND (one.completed_at IS NULL OR 'completed_at' <> ALL($9::text[]))
        AND ($13::integer IS NULL OR one.run_attempts = $13::integer)
        AND ($14::text IS NULL OR one.runner_id = $14::text)
        AND (one.runner_id IS NULL OR 'runner_id' <> ALL($9::text[]))
        AND ($15::text IS NULL OR one.output_addr = $15::text)
        AND (one.output_addr IS NULL OR 'output_addr' <> ALL($9::text[]))
        AND ($16::text IS NULL OR one.idempotency_key = $16::text)
        AND (one.idempotency_key IS NULL OR 'idempotency_key' <> ALL($9::text[]))
        AND ($17::text IS NULL OR one.stderr_addr = $17::text)
        AND (one.stderr_addr IS NULL OR 'stderr_addr' <> ALL($9::text[]))
        AND ($18::integer IS NULL OR one.exit_code = $18::integer)
        AND (one.exit_code IS NULL OR 'exit_code' <> ALL($9::text[]))
        AND ($19::text IS NULL OR one.reason = $19::text)
        AND (one.reason IS NULL OR 'reason' <> ALL($9::text[]))
        AND ($20::integer IS NULL OR one.releases = $20::integer)
    ORDER BY one.created_at DESC, one.job_id
    LIMIT $21::bigint + $22::bigint
    ) AS listed
) AS jobs
ORDER BY jobs.created_at DESC, jobs.job_id
OFFSET $22::bigint LIMIT $21::bigint;

-- find_oldest(states text[], since bigint, until bigint, after_at bigint, after_key text, record_job_id text, record_binary_addr text, record_input_addr text, absent text[], record_created_at bigint, record_updated_at bigint, record_completed_at bigint, record_run_attempts integer, record_runner_id text, record_output_addr text, record_idempotency_key text, record_stderr_addr text, record_exit_code integer, record_reason text, record_releases integer, size bigint, offset bigint)
-- A page of the listing, the oldest first.
-- Each state is read in its own order through an index, and only what one page needs of it.
SELECT
    jobs.job_id,
    jobs.binary_addr,
    jobs.input_addr,
    jobs.created_at,
    jobs.updated_at,
    jobs.completed_at,
    jobs.status,
    jobs.run_attempts,
    jobs.runner_id,
    jobs.output_addr,
    jobs.idempotency_key,
    jobs.stderr_addr,
    jobs.exit_code,
    jobs.reason,
    jobs.releases
FROM (
    (SELECT * FROM jobs AS one
    WHERE one.status = 'PENDING' AND 'PENDING' = ANY($1::text[])
        AND ($2::bigint IS NULL OR one.created_at >= $2::bigint)
        AND ($3::bigint IS NULL OR one.created_at < $3::bigint)
        AND ($4::bigint IS NULL OR one.created_at >= $4::bigint)
        AND ($4::bigint IS NULL OR one.created_at <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::text IS NULL OR one.binary_addr = $7::text)
        AND ($8::text IS NULL OR one.input_addr = $8::text)
        AND (one.input_addr IS NULL OR 'input_addr' <> ALL($9::text[]))
        AND ($10::bigint IS NULL OR one.created_at = $10::bigint)
        AND ($11::bigint IS NULL OR one.updated_at = $11::bigint)
        AND ($12::bigint IS NULL OR one.completed_at = $12::bigint)
        AND (one.completed_at IS NULL OR 'completed_at' <> ALL($9::text[]))
        AND ($13::integer IS NULL OR one.run_attempts = $13::integer)
        AND ($14::text IS NULL OR one.runner_id = $14::text)
        AND (one.runner_id IS NULL OR 'runner_id' <> ALL($9::text[]))
        AND ($15::text IS NULL OR one.output_addr = $15::text)
        AND (one.output_addr IS NULL OR 'output_addr' <> ALL($9::text[]))
        AND ($16::text IS NULL OR one.idempotency_key = $16::text)
        AND (one.idempotency_key IS NULL OR 'idempotency_key' <> ALL($9::text[]))
        AND ($17::text IS NULL OR one.stderr_addr = $17::text)
        AND (one.stderr_addr IS NULL OR 'stderr_addr' <> ALL($9::text[]))
        AND ($18::integer IS NULL OR one.exit_code = $18::integer)
        AND (one.exit_code IS NULL OR 'exit_code' <> ALL($9::text[]))
        AND ($19::text IS NULL OR one.reason = $19::text)
        AND (one.reason IS NULL OR 'reason' <> ALL($9::text[]))
        AND ($20::integer IS NULL OR one.releases = $20::integer)
    ORDER BY one.created_at ASC, one.job_id
    LIMIT $21::bigint + $22::bigint
    )
    UNION ALL
    SELECT listed.* FROM unnest($1::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
    SELECT * FROM jobs AS one
    WHERE one.status = wanted.state
        AND one.status <> 'PENDING'
        AND ($2::bigint IS NULL OR one.created_at >= $2::bigint)
        AND ($3::bigint IS NULL OR one.created_at < $3::bigint)
        AND ($4::bigint IS NULL OR one.created_at >= $4::bigint)
        AND ($4::bigint IS NULL OR one.created_at <> $4::bigint OR one.job_id > $5::text)
        AND ($6::text IS NULL OR one.job_id = $6::text)
        AND ($7::text IS NULL OR one.binary_addr = $7::text)
        AND ($8::text IS NULL OR one.input_addr = $8::text)
        AND (one.input_addr IS NULL OR 'input_addr' <> ALL($9::text[]))
        AND ($10::bigint IS NULL OR one.created_at = $10::bigint)
        AND ($11::bigint IS NULL OR one.updated_at = $11::bigint)
        AND ($12::bigint IS NULL OR one.completed_at = $12::bigint)
        AND (one.completed_at IS NULL OR 'completed_at' <> ALL($9::text[]))
        AND ($13::integer IS NULL OR one.run_attempts = $13::integer)
        AND ($14::text IS NULL OR one.runner_id = $14::text)
        AND (one.runner_id IS NULL OR 'runner_id' <> ALL($9::text[]))
        AND ($15::text IS NULL OR one.output_addr = $15::text)
        AND (one.output_addr IS NULL OR 'output_addr' <> ALL($9::text[]))
        AND ($16::text IS NULL OR one.idempotency_key = $16::text)
        AND (one.idempotency_key IS NULL OR 'idempotency_key' <> ALL($9::text[]))
        AND ($17::text IS NULL OR one.stderr_addr = $17::text)
        AND (one.stderr_addr IS NULL OR 'stderr_addr' <> ALL($9::text[]))
        AND ($18::integer IS NULL OR one.exit_code = $18::integer)
        AND (one.exit_code IS NULL OR 'exit_code' <> ALL($9::text[]))
        AND ($19::text IS NULL OR one.reason = $19::text)
        AND (one.reason IS NULL OR 'reason' <> ALL($9::text[]))
        AND ($20::integer IS NULL OR one.releases = $20::integer)
    ORDER BY one.created_at ASC, one.job_id
    LIMIT $21::bigint + $22::bigint
    ) AS listed
) AS jobs
ORDER BY jobs.created_at ASC, jobs.job_id
OFFSET $22::bigint LIMIT $21::bigint;

-- history(key text)
-- Every state change of one job, oldest first.
SELECT from_state, to_state, actor, fence, at, edge, NULL, NULL, NULL
FROM job_history
WHERE job_id = $1::text
ORDER BY number;

-- census()
-- How many there are in each state, and since when the oldest.
SELECT status, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch'))), 0))::double precision
FROM jobs
WHERE status = 'PENDING'
GROUP BY status
UNION ALL
SELECT status, count(*), greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(timestamptz 'epoch' + jobs.created_at * interval '1 millisecond', timestamptz 'epoch'))), 0))::double precision
FROM jobs
WHERE status <> 'PENDING'
GROUP BY status;

-- count_since(since bigint)
-- How many there are in each state, since a time.
SELECT status, count(*) FROM jobs
WHERE created_at >= $1::bigint
GROUP BY status;
