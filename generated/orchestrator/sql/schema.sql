-- What orchestrator keeps in PostgreSQL, for a fresh database.
-- Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
--
-- The guards hold for every session, also for one that a person types in. A session of the service says who
-- acts in the transaction-local setting app.actor; without it only edges are checked, not actors.


-- One piece of work, from the wish to have it done to its end. (spec/orchestrator/lifecycle.yaml: entities.job)
CREATE TABLE jobs (
    job_id uuid NOT NULL DEFAULT gen_random_uuid(),
    job_type text NOT NULL,
    payload jsonb NOT NULL,
    idempotency_key text NOT NULL,
    state text NOT NULL DEFAULT 'CREATED',
    retry_count integer NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    lease_owner text,
    lease_expiry timestamptz,
    next_attempt_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    result jsonb,
    last_error text,
    CONSTRAINT jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT jobs_unique UNIQUE (idempotency_key),
    CONSTRAINT jobs_retry_count_check CHECK (retry_count >= 0),
    CONSTRAINT jobs_attempt_check CHECK (attempt >= 0),
    CONSTRAINT jobs_lease_held CHECK (state <> 'RUNNING' OR (lease_owner IS NOT NULL AND lease_expiry IS NOT NULL)),
    CONSTRAINT jobs_lease_free CHECK (state IN ('RUNNING', 'QUEUED') OR (lease_owner IS NULL AND lease_expiry IS NULL)),
    CONSTRAINT jobs_next_attempt_at_check CHECK (state IN ('RETRY') OR next_attempt_at IS NULL),
    CONSTRAINT jobs_state_check CHECK (state IN ('CREATED', 'QUEUED', 'RUNNING', 'SUCCESS', 'RETRY', 'DEAD'))
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
CREATE TABLE job_transitions (
    number bigint GENERATED ALWAYS AS IDENTITY,
    job_id uuid NOT NULL,
    from_state text,
    to_state text NOT NULL,
    actor text NOT NULL,
    fence integer NOT NULL,
    at timestamptz NOT NULL,
    edge text,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT job_transitions_pkey PRIMARY KEY (job_id, number)
);


-- The guards are functions of their own and not conditions of the triggers, because every statement reads and
-- prepares the conditions of its triggers anew: one of this size takes ten times as long as the function.

-- What no edge writes stays as it was created, whoever asks, but for an update that says so in app.update;
-- statements that do not touch it do not come here.
CREATE OR REPLACE FUNCTION jobs_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('app.update', true), '') = 'on' THEN
        RETURN NEW;
    ELSIF NEW.job_type IS DISTINCT FROM OLD.job_type THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_type of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.payload IS DISTINCT FROM OLD.payload THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: payload of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: idempotency_key of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.created_at IS DISTINCT FROM OLD.created_at THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: created_at of a job never changes' USING ERRCODE = 'CH003';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER jobs_1_keep
    BEFORE UPDATE OF job_type, payload, idempotency_key, created_at ON jobs FOR EACH ROW
    EXECUTE FUNCTION jobs_keep();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE FUNCTION jobs_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
    edge text := coalesce(current_setting('app.edge', true), '');
BEGIN
    IF NEW.job_id <> OLD.job_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_id of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.retry_count < OLD.retry_count THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: retry_count of a job is never lowered' USING ERRCODE = 'CH003';
    ELSIF NEW.attempt < OLD.attempt THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: attempt of a job is never lowered' USING ERRCODE = 'CH003';
    ELSIF (OLD.state <> NEW.state) IS NOT TRUE THEN
        RETURN NEW;
    ELSIF (CASE OLD.state
        WHEN 'CREATED' THEN
            NEW.state = 'QUEUED' AND (actor IN ('', 'api'))
        WHEN 'QUEUED' THEN
            NEW.state = 'RUNNING' AND (actor IN ('', 'worker'))
        WHEN 'RUNNING' THEN
            NEW.state = 'SUCCESS' AND (actor IN ('', 'worker'))
            OR NEW.state = 'RETRY' AND edge NOT IN ('release') AND (actor IN ('', 'reaper', 'worker')
                AND (actor <> 'reaper' OR OLD.lease_expiry < clock_timestamp())
)
            OR NEW.state = 'RETRY' AND edge = 'release' AND (actor IN ('', 'worker'))
        WHEN 'RETRY' THEN
            NEW.state = 'QUEUED' AND (actor IN ('', 'scheduler'))
            OR NEW.state = 'DEAD' AND (actor IN ('', 'scheduler')
                -- The others only in the transaction whose failure this ends.
                OR actor IN ('reaper', 'worker') AND OLD.xmin = pg_current_xact_id()::xid
)
        ELSE false
    END) THEN
        RETURN NEW;
    ELSIF (OLD.state, NEW.state) IN (
        ('CREATED', 'QUEUED'),
        ('QUEUED', 'RUNNING'),
        ('RUNNING', 'SUCCESS'),
        ('RUNNING', 'RETRY'),
        ('RUNNING', 'RETRY'),
        ('RETRY', 'QUEUED'),
        ('RETRY', 'DEAD')
    ) THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not move this job from % to %', actor, OLD.state, NEW.state
            USING ERRCODE = 'CH002';
    END IF;
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a job never goes from % to %', OLD.state, NEW.state
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE TRIGGER jobs_2_move BEFORE UPDATE ON jobs FOR EACH ROW
    EXECUTE FUNCTION jobs_move();

-- A holder whose lease has ended writes nothing, however long it waited for the row: no row is changed then.
CREATE OR REPLACE FUNCTION jobs_too_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'RUNNING' AND coalesce(current_setting('app.actor', true), '') NOT IN ('', 'reaper') AND OLD.lease_owner <> '' THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER jobs_3_lease BEFORE UPDATE ON jobs FOR EACH ROW
    WHEN (OLD.lease_expiry <= clock_timestamp())
    EXECUTE FUNCTION jobs_too_late();

-- Completes a transition that was typed by hand. Those of the service are complete and do not come here.
CREATE OR REPLACE FUNCTION jobs_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.updated_at = OLD.updated_at THEN
        NEW.updated_at := greatest(clock_timestamp(), OLD.updated_at);
    END IF;
    IF NEW.state IN ('RETRY') THEN
        NEW.next_attempt_at := coalesce(NEW.next_attempt_at, clock_timestamp());
    ELSE
        NEW.next_attempt_at := NULL;
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER jobs_4_complete BEFORE UPDATE ON jobs FOR EACH ROW
    WHEN (
        OLD.state <> NEW.state AND (
            NEW.updated_at = OLD.updated_at
            OR (NEW.next_attempt_at IS NULL) = (NEW.state IN ('RETRY'))

        )
    )
    EXECUTE FUNCTION jobs_complete();

-- Nothing is deleted but what the lifecycle lets, and by whom.
CREATE OR REPLACE FUNCTION jobs_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF actor IN ('operator') AND OLD.state IN ('DEAD', 'SUCCESS') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not delete a job that is %', coalesce(nullif(actor, ''), 'a session without app.actor'), OLD.state
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
    INSERT INTO job_transitions (job_id, from_state, to_state, actor, fence, at, edge)
    SELECT
        after.job_id, before.state, after.state, coalesce(current_setting('app.actor', true), ''),
        after.attempt, clock_timestamp(),
        CASE
            WHEN before.state = 'CREATED' AND after.state = 'QUEUED' THEN 'accept'
            WHEN before.state = 'QUEUED' AND after.state = 'RUNNING' THEN 'acquire'
            WHEN before.state = 'RUNNING' AND after.state = 'SUCCESS' THEN 'complete'
            WHEN before.state = 'RUNNING' AND after.state = 'RETRY' THEN CASE WHEN coalesce(current_setting('app.edge', true), '') IN ('release') THEN current_setting('app.edge') ELSE 'fail' END
            WHEN before.state = 'RETRY' AND after.state = 'QUEUED' THEN 'requeue'
            WHEN before.state = 'RETRY' AND after.state = 'DEAD' THEN 'bury'
        END
    FROM before JOIN after USING (job_id)
    WHERE before.state <> after.state;
    -- Whoever waits for something to take may look now. What it finds is decided by the table alone.
    IF EXISTS (SELECT FROM after WHERE state = 'QUEUED') THEN
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
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a job begins as CREATED, not as %', state
        USING ERRCODE = 'CH001';
END $$;

-- Whoever creates one may take accept with it in the same step, and says so by its name in app.at_once
-- instead of app.actor: the row is written once, and the history has both.
CREATE OR REPLACE FUNCTION jobs_record_new() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _at_once text := coalesce(current_setting('app.at_once', true), '');
    _actor text := CASE WHEN _at_once = '' THEN coalesce(current_setting('app.actor', true), '') ELSE _at_once END;
    _moment timestamptz := clock_timestamp();
BEGIN
    IF _actor NOT IN ('', 'api') THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a job', _actor USING ERRCODE = 'CH002';
    END IF;
    INSERT INTO job_transitions (job_id, from_state, to_state, actor, fence, at, edge)
    SELECT
        after.job_id, line.source,
        CASE
            WHEN after.state = 'QUEUED' AND _at_once <> '' OR after.state = 'CREATED' THEN line.target
            ELSE jobs_refuse_new(after.state)
        END,
        _actor, after.attempt, _moment, CASE WHEN line.source IS NOT NULL THEN 'accept' END
    FROM after, (VALUES (NULL, 'CREATED'), ('CREATED', 'QUEUED')) AS line (source, target)
    WHERE line.source IS NULL OR after.state = line.target;
    IF _at_once <> '' THEN
        PERFORM pg_notify('jobs', '');
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_7_record_new AFTER INSERT ON jobs
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION jobs_record_new();

-- The keys of those that have what a new one must not share, in the order in which that is given.
-- It goes by the index, whatever plan was made while the table was small.
CREATE OR REPLACE FUNCTION jobs_known(_given_idempotency_key text[]) RETURNS uuid[]
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT jobs.job_id
        FROM unnest(_given_idempotency_key) WITH ORDINALITY AS given (idempotency_key, _place)
        LEFT JOIN jobs ON jobs.idempotency_key = given.idempotency_key
        ORDER BY given._place
    );
END $$;

-- Creates many and takes accept with each, in one statement; those whose idempotency_key is known stay as they are.
-- The keys of all in the order in which they were given, or NULL if each is new and has the key that was given.
-- The session of its caller is as it was when this returns.
CREATE OR REPLACE FUNCTION jobs_create_accept(
    _given_actor_ text,
    _given_job_id uuid[],
    _given_job_type text[],
    _given_payload jsonb[],
    _given_idempotency_key text[]
) RETURNS uuid[] LANGUAGE plpgsql SET app.at_once = '' AS $$
DECLARE
    _made bigint := 0;
    _added bigint;
    _known uuid[];
BEGIN
    PERFORM set_config('app.at_once', _given_actor_, true);
    -- One that was found and then deleted before it could be read is created after all.
    FOR _attempt IN 1..3 LOOP
        INSERT INTO jobs (job_id, job_type, payload, idempotency_key, state)
        SELECT given.job_id, given.job_type, given.payload, given.idempotency_key, 'QUEUED'
        FROM unnest(_given_job_id, _given_job_type, _given_payload, _given_idempotency_key) WITH ORDINALITY
            AS given (job_id, job_type, payload, idempotency_key, _place)
        -- In one order everywhere, so that two who create the same ones do not wait for each other in a circle.
        ORDER BY given.idempotency_key, given._place
        ON CONFLICT (idempotency_key) DO NOTHING;
        GET DIAGNOSTICS _added = ROW_COUNT;
        _made := _made + _added;
        IF _made = cardinality(_given_job_id) THEN
            RETURN NULL;
        END IF;
        _known := jobs_known(_given_idempotency_key);
        IF array_position(_known, NULL) IS NULL THEN
            RETURN _known;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'a job was neither created nor found' USING ERRCODE = 'serialization_failure';
END $$;

-- What has happened stays as it was written, until its job is deleted: the history goes with it.
CREATE OR REPLACE FUNCTION job_transitions_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER job_transitions_keep BEFORE UPDATE OR DELETE ON job_transitions FOR EACH ROW
    EXECUTE FUNCTION job_transitions_refuse();

CREATE OR REPLACE TRIGGER job_transitions_truncate BEFORE TRUNCATE ON job_transitions
    EXECUTE FUNCTION job_transitions_refuse();

CREATE OR REPLACE TRIGGER jobs_9_truncate BEFORE TRUNCATE ON jobs
    EXECUTE FUNCTION job_transitions_refuse();

CREATE OR REPLACE FUNCTION jobs_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM job_transitions USING before WHERE job_transitions.job_id = before.job_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_8_forget AFTER DELETE ON jobs
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT
    EXECUTE FUNCTION jobs_forget();

-- The only ways to delete for a role that does not own the table.
CREATE OR REPLACE FUNCTION jobs_remove(_actor text, _key uuid, _expected text) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY DELETE FROM jobs WHERE jobs.job_id = _key AND jobs.state = _expected RETURNING jobs.job_id;
END $$;

CREATE OR REPLACE FUNCTION jobs_purge(_actor text, _older_than double precision, _most integer) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT jobs.ctid AS place FROM jobs
        WHERE jobs.state IN ('SUCCESS', 'DEAD')
            AND jobs.updated_at < (SELECT clock_timestamp() - _older_than * interval '1 second')
        LIMIT _most
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM jobs USING old WHERE jobs.ctid = old.place RETURNING jobs.job_id;
END $$;

REVOKE ALL ON FUNCTION jobs_remove, jobs_purge FROM PUBLIC;

-- What runs as the owner means the tables of this schema, whatever the session that calls it has in its path.
DO $$
DECLARE
    _function regprocedure;
BEGIN
    FOR _function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef
            AND proname IN ('jobs_record', 'jobs_record_new', 'jobs_forget', 'jobs_remove', 'jobs_purge')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;


-- The next one to be taken; also their listing.
CREATE INDEX jobs_acquirable ON jobs (created_at, job_id) WHERE state = 'QUEUED';
-- What is due to fail.
CREATE INDEX jobs_due_fail ON jobs (lease_expiry) WHERE state = 'RUNNING';
-- What is due to requeue.
CREATE INDEX jobs_due_requeue ON jobs (next_attempt_at) WHERE state = 'RETRY';
-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX jobs_listed ON jobs (state, created_at DESC, job_id DESC) WHERE state <> 'QUEUED' AND state <> 'RUNNING';
