-- What queuey keeps in PostgreSQL, for a fresh database.
-- Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
--
-- The guards hold for every session, also for one that a person types in. A session of the service says who
-- acts in the transaction-local setting app.actor; without it only edges are checked, not actors.


-- One run of a WASI binary, from the wish to have it run to its end. (spec/queuey/lifecycle.yaml: entities.job)
CREATE TABLE jobs (
    job_id text NOT NULL,
    binary_addr text NOT NULL,
    input_addr text,
    created_at bigint NOT NULL DEFAULT 0,
    updated_at bigint NOT NULL DEFAULT 0,
    completed_at bigint,
    status text NOT NULL DEFAULT 'PENDING',
    run_attempts integer NOT NULL DEFAULT 0,
    runner_id text,
    output_addr text,
    idempotency_key text,
    stderr_addr text,
    exit_code integer,
    reason text,
    releases integer NOT NULL DEFAULT 0,
    CONSTRAINT jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT jobs_created_at_check CHECK (created_at >= 0),
    CONSTRAINT jobs_updated_at_check CHECK (updated_at >= 0),
    CONSTRAINT jobs_completed_at_check CHECK (completed_at >= 0),
    CONSTRAINT jobs_run_attempts_check CHECK (run_attempts >= 0),
    CONSTRAINT jobs_releases_check CHECK (releases >= 0),
    CONSTRAINT jobs_lease_held CHECK (status <> 'ACTIVE' OR (runner_id IS NOT NULL)),
    CONSTRAINT jobs_status_check CHECK (status IN ('PENDING', 'ACTIVE', 'COMPLETED', 'FAILED'))
) WITH (
    -- Every transition writes a new version of its row, so room for versions is kept in each page, and dead
    -- ones are taken away long before the usual fifth of the table is dead.
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);


-- Every state change of every job, written by the triggers below and by nobody else.
CREATE TABLE job_history (
    number bigint GENERATED ALWAYS AS IDENTITY,
    job_id text NOT NULL,
    from_state text,
    to_state text NOT NULL,
    actor text NOT NULL,
    fence integer NOT NULL,
    at timestamptz NOT NULL,
    edge text,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT job_history_pkey PRIMARY KEY (job_id, number)
);


-- The guards are functions of their own and not conditions of the triggers, because every statement reads and
-- prepares the conditions of its triggers anew: one of this size takes ten times as long as the function.

-- What no edge writes stays as it was created, whoever asks, but for an update that says so in app.update;
-- statements that do not touch it do not come here.
CREATE OR REPLACE FUNCTION jobs_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('app.update', true), '') = 'on' THEN
        RETURN NEW;
    ELSIF NEW.binary_addr IS DISTINCT FROM OLD.binary_addr THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: binary_addr of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.input_addr IS DISTINCT FROM OLD.input_addr THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: input_addr of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.created_at IS DISTINCT FROM OLD.created_at THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: created_at of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: idempotency_key of a job never changes' USING ERRCODE = 'CH003';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER jobs_1_keep
    BEFORE UPDATE OF binary_addr, input_addr, created_at, idempotency_key ON jobs FOR EACH ROW
    EXECUTE FUNCTION jobs_keep();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE FUNCTION jobs_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
    edge text := coalesce(current_setting('app.edge', true), '');
BEGIN
    IF NEW.job_id <> OLD.job_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_id of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.run_attempts < OLD.run_attempts THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: run_attempts of a job is never lowered' USING ERRCODE = 'CH003';
    ELSIF NEW.releases < OLD.releases THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: releases of a job is never lowered' USING ERRCODE = 'CH003';
    ELSIF (OLD.status <> NEW.status) IS NOT TRUE THEN
        RETURN NEW;
    ELSIF (CASE OLD.status
        WHEN 'PENDING' THEN
            NEW.status = 'ACTIVE' AND (actor IN ('', 'anyone', 'queue', 'runner'))
        WHEN 'ACTIVE' THEN
            NEW.status = 'PENDING' AND edge NOT IN ('release') AND (actor IN ('', 'anyone', 'queue', 'runner'))
            OR NEW.status = 'PENDING' AND edge = 'release' AND (actor IN ('', 'anyone', 'runner'))
            OR NEW.status = 'COMPLETED' AND (actor IN ('', 'anyone', 'runner'))
            OR NEW.status = 'FAILED' AND edge NOT IN ('write_off') AND (actor IN ('', 'anyone', 'client', 'runner'))
            OR NEW.status = 'FAILED' AND edge = 'write_off' AND (actor IN ('', 'anyone', 'queue', 'runner'))
        ELSE false
    END) THEN
        RETURN NEW;
    ELSIF (OLD.status, NEW.status) IN (
        ('PENDING', 'ACTIVE'),
        ('ACTIVE', 'PENDING'),
        ('ACTIVE', 'PENDING'),
        ('ACTIVE', 'COMPLETED'),
        ('ACTIVE', 'FAILED'),
        ('ACTIVE', 'FAILED')
    ) THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not move this job from % to %', actor, OLD.status, NEW.status
            USING ERRCODE = 'CH002';
    END IF;
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a job never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE TRIGGER jobs_2_move BEFORE UPDATE ON jobs FOR EACH ROW
    EXECUTE FUNCTION jobs_move();

-- Completes a transition that was typed by hand. Those of the service are complete and do not come here.
CREATE OR REPLACE FUNCTION jobs_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.updated_at = OLD.updated_at THEN
        NEW.updated_at := greatest(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, OLD.updated_at);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER jobs_4_complete BEFORE UPDATE ON jobs FOR EACH ROW
    WHEN (
        OLD.status <> NEW.status AND (
            NEW.updated_at = OLD.updated_at

        )
    )
    EXECUTE FUNCTION jobs_complete();

-- Nothing is deleted but what the lifecycle lets, and by whom.
CREATE OR REPLACE FUNCTION jobs_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not delete a job that is %', coalesce(nullif(actor, ''), 'a session without app.actor'), OLD.status
        USING ERRCODE = 'CH002';
END $$;

CREATE OR REPLACE TRIGGER jobs_5_delete BEFORE DELETE ON jobs FOR EACH ROW
    EXECUTE FUNCTION jobs_delete();

-- Appends to the history, once for all rows of a statement. Both sides have the same rows, so they are joined by
-- hash, whatever the session that runs the statement thinks of hash joins, and however few rows the first
-- statement of the session had: its plan is kept, and a loop in a loop would take a hundred times as long for
-- ten times as many.
CREATE OR REPLACE FUNCTION jobs_record() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET enable_hashjoin = on SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO job_history (job_id, from_state, to_state, actor, fence, at, edge)
    SELECT
        after.job_id, before.status, after.status, coalesce(current_setting('app.actor', true), ''),
        after.run_attempts, clock_timestamp(),
        CASE
            WHEN before.status = 'PENDING' AND after.status = 'ACTIVE' THEN 'claim'
            WHEN before.status = 'ACTIVE' AND after.status = 'COMPLETED' THEN 'complete'
            WHEN before.status = 'ACTIVE' AND after.status = 'FAILED' THEN CASE WHEN coalesce(current_setting('app.edge', true), '') IN ('write_off') THEN current_setting('app.edge') ELSE 'fail' END
            WHEN before.status = 'ACTIVE' AND after.status = 'PENDING' THEN CASE WHEN coalesce(current_setting('app.edge', true), '') IN ('release') THEN current_setting('app.edge') ELSE 'abandon' END
        END
    FROM before JOIN after USING (job_id)
    WHERE before.status <> after.status;
    -- Whoever waits for something to take may look now. What it finds is decided by the table alone.
    IF EXISTS (SELECT FROM after WHERE status = 'PENDING') THEN
        PERFORM pg_notify('jobs', '');
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_6_record AFTER UPDATE ON jobs
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION jobs_record();

-- Entities begin in one state, and only some may create them; this is checked while the history is written.
CREATE OR REPLACE FUNCTION jobs_refuse_new(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a job begins as PENDING, not as %', state
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE FUNCTION jobs_record_new() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _actor text := coalesce(current_setting('app.actor', true), '');
    _moment timestamptz := clock_timestamp();
BEGIN
    IF _actor NOT IN ('', 'anyone', 'client') THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a job', _actor USING ERRCODE = 'CH002';
    END IF;
    INSERT INTO job_history (job_id, from_state, to_state, actor, fence, at)
    SELECT
        after.job_id, NULL,
        CASE WHEN after.status = 'PENDING' THEN after.status ELSE jobs_refuse_new(after.status) END,
        _actor, after.run_attempts, _moment
    FROM after;
    PERFORM pg_notify('jobs', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_7_record_new AFTER INSERT ON jobs
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION jobs_record_new();

-- What has happened stays as it was written.
CREATE OR REPLACE FUNCTION job_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER job_history_keep BEFORE UPDATE OR DELETE ON job_history FOR EACH ROW
    EXECUTE FUNCTION job_history_refuse();

CREATE OR REPLACE TRIGGER job_history_truncate BEFORE TRUNCATE ON job_history
    EXECUTE FUNCTION job_history_refuse();

CREATE OR REPLACE TRIGGER jobs_9_truncate BEFORE TRUNCATE ON jobs
    EXECUTE FUNCTION job_history_refuse();

-- What runs as the owner means the tables of this schema, whatever the session that calls it has in its path.
DO $$
DECLARE
    _function regprocedure;
BEGIN
    FOR _function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef
            AND proname IN ('jobs_record', 'jobs_record_new')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;


-- The next one to be taken; also their listing.
CREATE INDEX jobs_acquirable ON jobs (created_at, job_id) WHERE status = 'PENDING';
-- What is due to abandon.
CREATE INDEX jobs_due_abandon ON jobs (updated_at) WHERE status = 'ACTIVE';
-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX jobs_listed ON jobs (status, created_at DESC, job_id DESC) WHERE status <> 'PENDING';
-- No two share a value; an empty text is none.
CREATE UNIQUE INDEX jobs_unique_idempotency_key ON jobs (idempotency_key) WHERE idempotency_key <> '';
