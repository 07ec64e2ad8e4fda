-- What orchestrator keeps in PostgreSQL, for a fresh database.
-- Generated from spec/orchestrator (sha256:ccd1c09b8a5c5eb3). Do not edit; run `nox -s generate`.
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
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT job_transitions_pkey PRIMARY KEY (job_id, number)
);


-- Says why a change of jobs is refused. It only runs for changes that are: the conditions of the triggers
-- themselves let the others pass, which costs far less than calling a function for each row.
CREATE OR REPLACE FUNCTION jobs_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'CREATED' THEN
            RAISE EXCEPTION 'ILLEGAL_TRANSITION: a job begins as CREATED, not as %', NEW.state
                USING ERRCODE = 'CH001';
        END IF;
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a job', actor USING ERRCODE = 'CH002';
    ELSIF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not delete a job that is %', actor, OLD.state
            USING ERRCODE = 'CH002';
    ELSIF NEW.job_id <> OLD.job_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_id of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.retry_count < OLD.retry_count THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: retry_count of a job is never lowered' USING ERRCODE = 'CH003';
    ELSIF NEW.attempt < OLD.attempt THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: attempt of a job is never lowered' USING ERRCODE = 'CH003';
    ELSIF (OLD.state, NEW.state) IN (
        ('CREATED', 'QUEUED'),
        ('QUEUED', 'RUNNING'),
        ('RUNNING', 'SUCCESS'),
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

-- Entities begin in one state, and only some may create them.
CREATE OR REPLACE TRIGGER jobs_1_create BEFORE INSERT ON jobs FOR EACH ROW
    WHEN (NEW.state <> 'CREATED' OR NOT coalesce(current_setting('app.actor', true), '') IN ('', 'api'))
    EXECUTE FUNCTION jobs_refuse();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE TRIGGER jobs_2_move BEFORE UPDATE ON jobs FOR EACH ROW
    WHEN (
        NEW.job_id <> OLD.job_id
        OR NEW.retry_count < OLD.retry_count
        OR NEW.attempt < OLD.attempt
        OR OLD.state <> NEW.state AND NOT CASE OLD.state
            WHEN 'CREATED' THEN
                NEW.state = 'QUEUED' AND (coalesce(current_setting('app.actor', true), '') IN ('', 'api'))
            WHEN 'QUEUED' THEN
                NEW.state = 'RUNNING' AND (coalesce(current_setting('app.actor', true), '') IN ('', 'worker'))
            WHEN 'RUNNING' THEN
                NEW.state = 'SUCCESS' AND (coalesce(current_setting('app.actor', true), '') IN ('', 'worker'))
                OR NEW.state = 'RETRY' AND (coalesce(current_setting('app.actor', true), '') IN ('', 'reaper', 'worker')
                    AND (coalesce(current_setting('app.actor', true), '') <> 'reaper' OR OLD.lease_expiry < clock_timestamp())
)
            WHEN 'RETRY' THEN
                NEW.state = 'QUEUED' AND (coalesce(current_setting('app.actor', true), '') IN ('', 'scheduler'))
                OR NEW.state = 'DEAD' AND (coalesce(current_setting('app.actor', true), '') IN ('', 'scheduler')
                    -- The others only in the transaction whose failure this ends.
                    OR coalesce(current_setting('app.actor', true), '') IN ('reaper', 'worker') AND OLD.xmin = pg_current_xact_id()::xid
)
            ELSE false
        END
    )
    EXECUTE FUNCTION jobs_refuse();

-- A holder whose lease has ended writes nothing, however long it waited for the row: no row is changed then.
CREATE OR REPLACE FUNCTION jobs_too_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_3_lease BEFORE UPDATE ON jobs FOR EACH ROW
    WHEN (
        OLD.state = 'RUNNING'
        AND coalesce(current_setting('app.actor', true), '') NOT IN ('', 'reaper')
        AND OLD.lease_expiry <= clock_timestamp()
    )
    EXECUTE FUNCTION jobs_too_late();

-- Completes a transition that was typed by hand. Those of the service are complete and do not come here.
CREATE OR REPLACE FUNCTION jobs_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.updated_at = OLD.updated_at THEN
        NEW.updated_at := clock_timestamp();
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

-- The service deletes nothing but what the lifecycle lets it.
CREATE OR REPLACE TRIGGER jobs_5_delete BEFORE DELETE ON jobs FOR EACH ROW
    WHEN (coalesce(current_setting('app.actor', true), '') <> '' AND NOT (coalesce(current_setting('app.actor', true), '') IN ('', 'operator') AND OLD.state IN ('DEAD', 'SUCCESS')))
    EXECUTE FUNCTION jobs_refuse();

-- Appends to the history, once for all rows of a statement. Both sides have the same rows, so joining them by
-- hash is right whatever the session that runs the statement thinks of hash joins.
CREATE OR REPLACE FUNCTION jobs_record() RETURNS trigger LANGUAGE plpgsql SET enable_hashjoin = on AS $$
BEGIN
    INSERT INTO job_transitions (job_id, from_state, to_state, actor, fence, at)
    SELECT
        after.job_id, before.state, after.state, coalesce(current_setting('app.actor', true), ''),
        after.attempt, clock_timestamp()
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

CREATE OR REPLACE FUNCTION jobs_record_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO job_transitions (job_id, from_state, to_state, actor, fence, at)
    SELECT job_id, NULL, state, coalesce(current_setting('app.actor', true), ''), attempt, clock_timestamp()
    FROM after;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_7_record_new AFTER INSERT ON jobs
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION jobs_record_new();

-- What has happened stays as it was written.
CREATE OR REPLACE FUNCTION job_transitions_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_CHANGE: job_transitions is only ever added to' USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER job_transitions_keep BEFORE UPDATE OR DELETE ON job_transitions FOR EACH ROW
    WHEN (coalesce(current_setting('app.actor', true), '') NOT IN ('operator'))
    EXECUTE FUNCTION job_transitions_refuse();


-- The next one to be taken.
CREATE INDEX jobs_acquirable ON jobs (created_at) WHERE state = 'QUEUED';
-- What is due to fail.
CREATE INDEX jobs_due_fail ON jobs (lease_expiry) WHERE state = 'RUNNING';
-- What is due to requeue.
CREATE INDEX jobs_due_requeue ON jobs (next_attempt_at) WHERE state = 'RETRY';
-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX jobs_listed ON jobs (state, created_at DESC, job_id DESC);
