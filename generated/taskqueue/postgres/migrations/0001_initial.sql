-- Leads to the schema sha256:507d1d1b30c9240b. A migration is never edited once it was accepted.

-- One piece of work, from its acceptance to its result. (spec/taskqueue/lifecycle.yaml: entities.job)
CREATE TABLE jobs (
    job_id text NOT NULL,
    status text NOT NULL DEFAULT 'QUEUED',
    job_type text NOT NULL,
    created_at_ms bigint NOT NULL DEFAULT 0,
    started_at_ms bigint NOT NULL DEFAULT 0,
    finished_at_ms bigint NOT NULL DEFAULT 0,
    cancel_requested boolean NOT NULL DEFAULT false,
    client_request_id text NOT NULL,
    spec bytea NOT NULL,
    failure_reason text NOT NULL DEFAULT '',
    cancel_reason text NOT NULL DEFAULT '',
    CONSTRAINT jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT jobs_status_check CHECK (status IN ('QUEUED', 'RUNNING', 'DONE', 'FAILED', 'CANCELED'))
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
    ELSIF NEW.job_type IS DISTINCT FROM OLD.job_type THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_type of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.created_at_ms IS DISTINCT FROM OLD.created_at_ms THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: created_at_ms of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.client_request_id IS DISTINCT FROM OLD.client_request_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: client_request_id of a job never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.spec IS DISTINCT FROM OLD.spec THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: spec of a job never changes' USING ERRCODE = 'CH003';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER jobs_1_keep
    BEFORE UPDATE OF job_type, created_at_ms, client_request_id, spec ON jobs FOR EACH ROW
    EXECUTE FUNCTION jobs_keep();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE FUNCTION jobs_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF NEW.job_id <> OLD.job_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_id of a job never changes' USING ERRCODE = 'CH003';
    ELSIF (OLD.status <> NEW.status) IS NOT TRUE THEN
        RETURN NEW;
    ELSIF (CASE OLD.status
        WHEN 'QUEUED' THEN
            NEW.status = 'RUNNING' AND (actor IN ('', 'coordinator'))
            OR NEW.status = 'CANCELED' AND (actor IN ('', 'gateway'))
        WHEN 'RUNNING' THEN
            NEW.status = 'DONE' AND (actor IN ('', 'coordinator'))
            OR NEW.status = 'FAILED' AND (actor IN ('', 'coordinator'))
            OR NEW.status = 'CANCELED' AND (actor IN ('', 'coordinator'))
        ELSE false
    END) THEN
        RETURN NEW;
    ELSIF (OLD.status, NEW.status) IN (
        ('QUEUED', 'RUNNING'),
        ('QUEUED', 'CANCELED'),
        ('RUNNING', 'DONE'),
        ('RUNNING', 'FAILED'),
        ('RUNNING', 'CANCELED')
    ) THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not move this job from % to %', actor, OLD.status, NEW.status
            USING ERRCODE = 'CH002';
    END IF;
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a job never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE TRIGGER jobs_2_move BEFORE UPDATE ON jobs FOR EACH ROW
    EXECUTE FUNCTION jobs_move();

-- Nothing is deleted but what the lifecycle lets, and by whom.
CREATE OR REPLACE FUNCTION jobs_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    -- What has ended long enough ago is forgotten.
    IF coalesce(current_setting('app.forget', true), '') = 'on' AND OLD.status IN ('CANCELED', 'DONE', 'FAILED') THEN
        RETURN OLD;
    END IF;
    IF actor IN ('gateway') AND OLD.status IN ('QUEUED') THEN
        RETURN OLD;
    END IF;
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
    INSERT INTO job_history (job_id, from_state, to_state, actor, fence, at)
    SELECT
        after.job_id, before.status, after.status, coalesce(current_setting('app.actor', true), ''),
        0, clock_timestamp()
    FROM before JOIN after USING (job_id)
    WHERE before.status <> after.status;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_6_record AFTER UPDATE ON jobs
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION jobs_record();

-- Entities begin in one state, and only some may create them; this is checked while the history is written.
CREATE OR REPLACE FUNCTION jobs_refuse_new(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a job begins as QUEUED, not as %', state
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE FUNCTION jobs_record_new() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _actor text := coalesce(current_setting('app.actor', true), '');
    _moment timestamptz := clock_timestamp();
BEGIN
    IF _actor NOT IN ('', 'gateway') THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a job', _actor USING ERRCODE = 'CH002';
    END IF;
    INSERT INTO job_history (job_id, from_state, to_state, actor, fence, at)
    SELECT
        after.job_id, NULL,
        CASE WHEN after.status = 'QUEUED' THEN after.status ELSE jobs_refuse_new(after.status) END,
        _actor, 0, _moment
    FROM after;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_7_record_new AFTER INSERT ON jobs
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION jobs_record_new();

-- What has happened stays as it was written, until its job is deleted: the history goes with it.
CREATE OR REPLACE FUNCTION job_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER job_history_keep BEFORE UPDATE OR DELETE ON job_history FOR EACH ROW
    EXECUTE FUNCTION job_history_refuse();

CREATE OR REPLACE TRIGGER job_history_truncate BEFORE TRUNCATE ON job_history
    EXECUTE FUNCTION job_history_refuse();

CREATE OR REPLACE TRIGGER jobs_9_truncate BEFORE TRUNCATE ON jobs
    EXECUTE FUNCTION job_history_refuse();

CREATE OR REPLACE FUNCTION jobs_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM job_history USING before WHERE job_history.job_id = before.job_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER jobs_8_forget AFTER DELETE ON jobs
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT
    EXECUTE FUNCTION jobs_forget();

-- Forgets what ended so many seconds ago, and all but the last so many that have ended, each unless it is NULL.
-- Returns the seconds until the next one is due, by the time alone.
CREATE OR REPLACE FUNCTION jobs_forget_ended(_seconds double precision, _most bigint) RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _keys text[];
BEGIN
    IF _seconds IS NOT NULL THEN
        SELECT array_agg(_ended.key) INTO _keys FROM (
            SELECT job_id AS key FROM job_history
            WHERE to_state IN ('CANCELED', 'DONE', 'FAILED') AND at <= (SELECT clock_timestamp() - _seconds * interval '1 second')
            ORDER BY at
            LIMIT 10000
        ) AS _ended;
    END IF;
    IF _most IS NOT NULL THEN
        SELECT coalesce(_keys, '{}') || coalesce(array_agg(_ended.key), '{}') INTO _keys FROM (
            SELECT job_id AS key FROM job_history
            WHERE to_state IN ('CANCELED', 'DONE', 'FAILED')
            ORDER BY number DESC
            OFFSET _most
            LIMIT 10000
        ) AS _ended;
    END IF;
    IF cardinality(_keys) > 0 THEN
        PERFORM set_config('app.forget', 'on', true);
        -- Another session that is about to forget one does so.
        WITH old AS MATERIALIZED (
            SELECT jobs.ctid AS place FROM jobs
            WHERE jobs.job_id = ANY(_keys) AND jobs.status IN ('CANCELED', 'DONE', 'FAILED')
            FOR UPDATE SKIP LOCKED
        )
        DELETE FROM jobs USING old WHERE jobs.ctid = old.place;
        PERFORM set_config('app.forget', '', true);
    END IF;
    RETURN (
        SELECT extract(epoch FROM min(at) - clock_timestamp()) + _seconds
        FROM job_history WHERE to_state IN ('CANCELED', 'DONE', 'FAILED')
    );
END $$;

REVOKE ALL ON FUNCTION jobs_forget_ended FROM PUBLIC;

-- The only ways to delete for a role that does not own the table.
CREATE OR REPLACE FUNCTION jobs_remove(_actor text, _key text, _expected text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY DELETE FROM jobs WHERE jobs.job_id = _key AND jobs.status = _expected RETURNING jobs.job_id;
END $$;

CREATE OR REPLACE FUNCTION jobs_purge(_actor text, _older_than double precision, _most integer) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT jobs.ctid AS place FROM jobs
        WHERE jobs.status IN ('QUEUED')
            AND greatest(timestamptz 'epoch' + jobs.created_at_ms * interval '1 millisecond', timestamptz 'epoch' + jobs.started_at_ms * interval '1 millisecond', timestamptz 'epoch' + jobs.finished_at_ms * interval '1 millisecond') < (SELECT clock_timestamp() - _older_than * interval '1 second')
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
            AND proname IN ('jobs_record', 'jobs_record_new', 'jobs_forget', 'jobs_forget_ended', 'jobs_remove', 'jobs_purge')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;


-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX jobs_listed ON jobs (status, created_at_ms DESC, job_id DESC);
-- What has ended, by when.
CREATE INDEX job_history_ended ON job_history (at) WHERE to_state IN ('CANCELED', 'DONE', 'FAILED');
-- The same in the order in which they have ended.
CREATE INDEX job_history_ended_by_number ON job_history (number) WHERE to_state IN ('CANCELED', 'DONE', 'FAILED');

-- The memory of a submit, so that its repetition finds the job that there is. (spec/taskqueue/lifecycle.yaml: entities.submit_key)
CREATE TABLE submit_keys (
    client_request_id text NOT NULL,
    presence text NOT NULL DEFAULT 'PRESENCE_PRESENT',
    job_id text NOT NULL,
    remembered_at_ms bigint NOT NULL,
    CONSTRAINT submit_keys_pkey PRIMARY KEY (client_request_id),
    CONSTRAINT submit_keys_presence_check CHECK (presence IN ('PRESENCE_PRESENT'))
) WITH (
    -- Every transition writes a new version of its row, so room for versions is kept in each page, and dead
    -- ones are taken away long before the usual fifth of the table is dead.
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);


-- Every state change of every submit_key, written by the triggers below and by nobody else.
CREATE TABLE submit_key_history (
    number bigint GENERATED ALWAYS AS IDENTITY,
    client_request_id text NOT NULL,
    from_state text,
    to_state text NOT NULL,
    actor text NOT NULL,
    fence integer NOT NULL,
    at timestamptz NOT NULL,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT submit_key_history_pkey PRIMARY KEY (client_request_id, number)
);


-- The guards are functions of their own and not conditions of the triggers, because every statement reads and
-- prepares the conditions of its triggers anew: one of this size takes ten times as long as the function.

-- What no edge writes stays as it was created, whoever asks, but for an update that says so in app.update;
-- statements that do not touch it do not come here.
CREATE OR REPLACE FUNCTION submit_keys_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('app.update', true), '') = 'on' THEN
        RETURN NEW;
    ELSIF NEW.job_id IS DISTINCT FROM OLD.job_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_id of a submit_key never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.remembered_at_ms IS DISTINCT FROM OLD.remembered_at_ms THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: remembered_at_ms of a submit_key never changes' USING ERRCODE = 'CH003';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER submit_keys_1_keep
    BEFORE UPDATE OF job_id, remembered_at_ms ON submit_keys FOR EACH ROW
    EXECUTE FUNCTION submit_keys_keep();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE FUNCTION submit_keys_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF NEW.client_request_id <> OLD.client_request_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: client_request_id of a submit_key never changes' USING ERRCODE = 'CH003';
    ELSIF (OLD.presence <> NEW.presence) IS NOT TRUE THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a submit_key never goes from % to %', OLD.presence, NEW.presence
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE TRIGGER submit_keys_2_move BEFORE UPDATE ON submit_keys FOR EACH ROW
    EXECUTE FUNCTION submit_keys_move();

-- Nothing is deleted but what the lifecycle lets, and by whom.
CREATE OR REPLACE FUNCTION submit_keys_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF actor IN ('gateway') AND OLD.presence IN ('PRESENCE_PRESENT') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not delete a submit_key that is %', coalesce(nullif(actor, ''), 'a session without app.actor'), OLD.presence
        USING ERRCODE = 'CH002';
END $$;

CREATE OR REPLACE TRIGGER submit_keys_5_delete BEFORE DELETE ON submit_keys FOR EACH ROW
    EXECUTE FUNCTION submit_keys_delete();

-- Appends to the history, once for all rows of a statement. Both sides have the same rows, so they are joined by
-- hash, whatever the session that runs the statement thinks of hash joins, and however few rows the first
-- statement of the session had: its plan is kept, and a loop in a loop would take a hundred times as long for
-- ten times as many.
CREATE OR REPLACE FUNCTION submit_keys_record() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET enable_hashjoin = on SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO submit_key_history (client_request_id, from_state, to_state, actor, fence, at)
    SELECT
        after.client_request_id, before.presence, after.presence, coalesce(current_setting('app.actor', true), ''),
        0, clock_timestamp()
    FROM before JOIN after USING (client_request_id)
    WHERE before.presence <> after.presence;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER submit_keys_6_record AFTER UPDATE ON submit_keys
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION submit_keys_record();

-- Entities begin in one state, and only some may create them; this is checked while the history is written.
CREATE OR REPLACE FUNCTION submit_keys_refuse_new(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a submit_key begins as PRESENCE_PRESENT, not as %', state
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE FUNCTION submit_keys_record_new() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _actor text := coalesce(current_setting('app.actor', true), '');
    _moment timestamptz := clock_timestamp();
BEGIN
    IF _actor NOT IN ('', 'gateway') THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a submit_key', _actor USING ERRCODE = 'CH002';
    END IF;
    INSERT INTO submit_key_history (client_request_id, from_state, to_state, actor, fence, at)
    SELECT
        after.client_request_id, NULL,
        CASE WHEN after.presence = 'PRESENCE_PRESENT' THEN after.presence ELSE submit_keys_refuse_new(after.presence) END,
        _actor, 0, _moment
    FROM after;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER submit_keys_7_record_new AFTER INSERT ON submit_keys
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION submit_keys_record_new();

-- What has happened stays as it was written, until its submit_key is deleted: the history goes with it.
CREATE OR REPLACE FUNCTION submit_key_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER submit_key_history_keep BEFORE UPDATE OR DELETE ON submit_key_history FOR EACH ROW
    EXECUTE FUNCTION submit_key_history_refuse();

CREATE OR REPLACE TRIGGER submit_key_history_truncate BEFORE TRUNCATE ON submit_key_history
    EXECUTE FUNCTION submit_key_history_refuse();

CREATE OR REPLACE TRIGGER submit_keys_9_truncate BEFORE TRUNCATE ON submit_keys
    EXECUTE FUNCTION submit_key_history_refuse();

CREATE OR REPLACE FUNCTION submit_keys_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM submit_key_history USING before WHERE submit_key_history.client_request_id = before.client_request_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER submit_keys_8_forget AFTER DELETE ON submit_keys
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT
    EXECUTE FUNCTION submit_keys_forget();

-- The only ways to delete for a role that does not own the table.
CREATE OR REPLACE FUNCTION submit_keys_remove(_actor text, _key text, _expected text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY DELETE FROM submit_keys WHERE submit_keys.client_request_id = _key AND submit_keys.presence = _expected RETURNING submit_keys.client_request_id;
END $$;

CREATE OR REPLACE FUNCTION submit_keys_purge(_actor text, _older_than double precision, _most integer) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT submit_keys.ctid AS place FROM submit_keys
        WHERE submit_keys.presence IN ('PRESENCE_PRESENT')
        LIMIT _most
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM submit_keys USING old WHERE submit_keys.ctid = old.place RETURNING submit_keys.client_request_id;
END $$;

REVOKE ALL ON FUNCTION submit_keys_remove, submit_keys_purge FROM PUBLIC;

-- What runs as the owner means the tables of this schema, whatever the session that calls it has in its path.
DO $$
DECLARE
    _function regprocedure;
BEGIN
    FOR _function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef
            AND proname IN ('submit_keys_record', 'submit_keys_record_new', 'submit_keys_forget', 'submit_keys_remove', 'submit_keys_purge')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;


-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX submit_keys_listed ON submit_keys (presence, remembered_at_ms DESC, client_request_id DESC);

-- The place of a waiting job in the queue. (spec/taskqueue/lifecycle.yaml: entities.entry)
CREATE TABLE entrys (
    job_id text NOT NULL,
    presence text NOT NULL DEFAULT 'PRESENCE_PRESENT',
    enqueued_at_ms bigint NOT NULL,
    CONSTRAINT entrys_pkey PRIMARY KEY (job_id),
    CONSTRAINT entrys_presence_check CHECK (presence IN ('PRESENCE_PRESENT'))
) WITH (
    -- Every transition writes a new version of its row, so room for versions is kept in each page, and dead
    -- ones are taken away long before the usual fifth of the table is dead.
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);


-- Every state change of every entry, written by the triggers below and by nobody else.
CREATE TABLE entry_history (
    number bigint GENERATED ALWAYS AS IDENTITY,
    job_id text NOT NULL,
    from_state text,
    to_state text NOT NULL,
    actor text NOT NULL,
    fence integer NOT NULL,
    at timestamptz NOT NULL,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT entry_history_pkey PRIMARY KEY (job_id, number)
);


-- The guards are functions of their own and not conditions of the triggers, because every statement reads and
-- prepares the conditions of its triggers anew: one of this size takes ten times as long as the function.

-- What no edge writes stays as it was created, whoever asks, but for an update that says so in app.update;
-- statements that do not touch it do not come here.
CREATE OR REPLACE FUNCTION entrys_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('app.update', true), '') = 'on' THEN
        RETURN NEW;
    ELSIF NEW.enqueued_at_ms IS DISTINCT FROM OLD.enqueued_at_ms THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: enqueued_at_ms of a entry never changes' USING ERRCODE = 'CH003';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER entrys_1_keep
    BEFORE UPDATE OF enqueued_at_ms ON entrys FOR EACH ROW
    EXECUTE FUNCTION entrys_keep();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE FUNCTION entrys_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF NEW.job_id <> OLD.job_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_id of a entry never changes' USING ERRCODE = 'CH003';
    ELSIF (OLD.presence <> NEW.presence) IS NOT TRUE THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a entry never goes from % to %', OLD.presence, NEW.presence
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE TRIGGER entrys_2_move BEFORE UPDATE ON entrys FOR EACH ROW
    EXECUTE FUNCTION entrys_move();

-- Nothing is deleted but what the lifecycle lets, and by whom.
CREATE OR REPLACE FUNCTION entrys_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF actor IN ('coordinator', 'gateway') AND OLD.presence IN ('PRESENCE_PRESENT') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not delete a entry that is %', coalesce(nullif(actor, ''), 'a session without app.actor'), OLD.presence
        USING ERRCODE = 'CH002';
END $$;

CREATE OR REPLACE TRIGGER entrys_5_delete BEFORE DELETE ON entrys FOR EACH ROW
    EXECUTE FUNCTION entrys_delete();

-- Appends to the history, once for all rows of a statement. Both sides have the same rows, so they are joined by
-- hash, whatever the session that runs the statement thinks of hash joins, and however few rows the first
-- statement of the session had: its plan is kept, and a loop in a loop would take a hundred times as long for
-- ten times as many.
CREATE OR REPLACE FUNCTION entrys_record() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET enable_hashjoin = on SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO entry_history (job_id, from_state, to_state, actor, fence, at)
    SELECT
        after.job_id, before.presence, after.presence, coalesce(current_setting('app.actor', true), ''),
        0, clock_timestamp()
    FROM before JOIN after USING (job_id)
    WHERE before.presence <> after.presence;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER entrys_6_record AFTER UPDATE ON entrys
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION entrys_record();

-- Entities begin in one state, and only some may create them; this is checked while the history is written.
CREATE OR REPLACE FUNCTION entrys_refuse_new(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a entry begins as PRESENCE_PRESENT, not as %', state
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE FUNCTION entrys_record_new() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _actor text := coalesce(current_setting('app.actor', true), '');
    _moment timestamptz := clock_timestamp();
BEGIN
    IF _actor NOT IN ('', 'coordinator', 'gateway') THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a entry', _actor USING ERRCODE = 'CH002';
    END IF;
    INSERT INTO entry_history (job_id, from_state, to_state, actor, fence, at)
    SELECT
        after.job_id, NULL,
        CASE WHEN after.presence = 'PRESENCE_PRESENT' THEN after.presence ELSE entrys_refuse_new(after.presence) END,
        _actor, 0, _moment
    FROM after;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER entrys_7_record_new AFTER INSERT ON entrys
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION entrys_record_new();

-- What has happened stays as it was written, until its entry is deleted: the history goes with it.
CREATE OR REPLACE FUNCTION entry_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER entry_history_keep BEFORE UPDATE OR DELETE ON entry_history FOR EACH ROW
    EXECUTE FUNCTION entry_history_refuse();

CREATE OR REPLACE TRIGGER entry_history_truncate BEFORE TRUNCATE ON entry_history
    EXECUTE FUNCTION entry_history_refuse();

CREATE OR REPLACE TRIGGER entrys_9_truncate BEFORE TRUNCATE ON entrys
    EXECUTE FUNCTION entry_history_refuse();

CREATE OR REPLACE FUNCTION entrys_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM entry_history USING before WHERE entry_history.job_id = before.job_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER entrys_8_forget AFTER DELETE ON entrys
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT
    EXECUTE FUNCTION entrys_forget();

-- The only ways to delete for a role that does not own the table.
CREATE OR REPLACE FUNCTION entrys_remove(_actor text, _key text, _expected text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY DELETE FROM entrys WHERE entrys.job_id = _key AND entrys.presence = _expected RETURNING entrys.job_id;
END $$;

CREATE OR REPLACE FUNCTION entrys_purge(_actor text, _older_than double precision, _most integer) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT entrys.ctid AS place FROM entrys
        WHERE entrys.presence IN ('PRESENCE_PRESENT')
        LIMIT _most
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM entrys USING old WHERE entrys.ctid = old.place RETURNING entrys.job_id;
END $$;

REVOKE ALL ON FUNCTION entrys_remove, entrys_purge FROM PUBLIC;

-- What runs as the owner means the tables of this schema, whatever the session that calls it has in its path.
DO $$
DECLARE
    _function regprocedure;
BEGIN
    FOR _function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef
            AND proname IN ('entrys_record', 'entrys_record_new', 'entrys_forget', 'entrys_remove', 'entrys_purge')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;


-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX entrys_listed ON entrys (presence, enqueued_at_ms DESC, job_id DESC);

-- The result of a terminal job. (spec/taskqueue/lifecycle.yaml: entities.envelope)
CREATE TABLE envelopes (
    job_id text NOT NULL,
    presence text NOT NULL DEFAULT 'PRESENCE_PRESENT',
    terminal_status integer NOT NULL,
    runtime_ms integer NOT NULL,
    output_summary text NOT NULL,
    output_bytes bytea NOT NULL,
    checksum text NOT NULL,
    stored_at_ms bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    CONSTRAINT envelopes_pkey PRIMARY KEY (job_id),
    CONSTRAINT envelopes_runtime_ms_check CHECK (runtime_ms >= 0),
    CONSTRAINT envelopes_presence_check CHECK (presence IN ('PRESENCE_PRESENT'))
) WITH (
    -- Every transition writes a new version of its row, so room for versions is kept in each page, and dead
    -- ones are taken away long before the usual fifth of the table is dead.
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);


-- Every state change of every envelope, written by the triggers below and by nobody else.
CREATE TABLE envelope_history (
    number bigint GENERATED ALWAYS AS IDENTITY,
    job_id text NOT NULL,
    from_state text,
    to_state text NOT NULL,
    actor text NOT NULL,
    fence integer NOT NULL,
    at timestamptz NOT NULL,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT envelope_history_pkey PRIMARY KEY (job_id, number)
);


-- The guards are functions of their own and not conditions of the triggers, because every statement reads and
-- prepares the conditions of its triggers anew: one of this size takes ten times as long as the function.

-- What no edge writes stays as it was created, whoever asks, but for an update that says so in app.update;
-- statements that do not touch it do not come here.
CREATE OR REPLACE FUNCTION envelopes_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('app.update', true), '') = 'on' THEN
        RETURN NEW;
    ELSIF NEW.terminal_status IS DISTINCT FROM OLD.terminal_status THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: terminal_status of a envelope never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.runtime_ms IS DISTINCT FROM OLD.runtime_ms THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: runtime_ms of a envelope never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.output_summary IS DISTINCT FROM OLD.output_summary THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: output_summary of a envelope never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.output_bytes IS DISTINCT FROM OLD.output_bytes THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: output_bytes of a envelope never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.checksum IS DISTINCT FROM OLD.checksum THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: checksum of a envelope never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.stored_at_ms IS DISTINCT FROM OLD.stored_at_ms THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: stored_at_ms of a envelope never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.stored_bytes IS DISTINCT FROM OLD.stored_bytes THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: stored_bytes of a envelope never changes' USING ERRCODE = 'CH003';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER envelopes_1_keep
    BEFORE UPDATE OF terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes ON envelopes FOR EACH ROW
    EXECUTE FUNCTION envelopes_keep();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE FUNCTION envelopes_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF NEW.job_id <> OLD.job_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: job_id of a envelope never changes' USING ERRCODE = 'CH003';
    ELSIF (OLD.presence <> NEW.presence) IS NOT TRUE THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a envelope never goes from % to %', OLD.presence, NEW.presence
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE TRIGGER envelopes_2_move BEFORE UPDATE ON envelopes FOR EACH ROW
    EXECUTE FUNCTION envelopes_move();

-- Nothing is deleted but what the lifecycle lets, and by whom.
CREATE OR REPLACE FUNCTION envelopes_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF actor IN ('coordinator', 'gateway') AND OLD.presence IN ('PRESENCE_PRESENT') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not delete a envelope that is %', coalesce(nullif(actor, ''), 'a session without app.actor'), OLD.presence
        USING ERRCODE = 'CH002';
END $$;

CREATE OR REPLACE TRIGGER envelopes_5_delete BEFORE DELETE ON envelopes FOR EACH ROW
    EXECUTE FUNCTION envelopes_delete();

-- Appends to the history, once for all rows of a statement. Both sides have the same rows, so they are joined by
-- hash, whatever the session that runs the statement thinks of hash joins, and however few rows the first
-- statement of the session had: its plan is kept, and a loop in a loop would take a hundred times as long for
-- ten times as many.
CREATE OR REPLACE FUNCTION envelopes_record() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET enable_hashjoin = on SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO envelope_history (job_id, from_state, to_state, actor, fence, at)
    SELECT
        after.job_id, before.presence, after.presence, coalesce(current_setting('app.actor', true), ''),
        0, clock_timestamp()
    FROM before JOIN after USING (job_id)
    WHERE before.presence <> after.presence;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER envelopes_6_record AFTER UPDATE ON envelopes
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION envelopes_record();

-- Entities begin in one state, and only some may create them; this is checked while the history is written.
CREATE OR REPLACE FUNCTION envelopes_refuse_new(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a envelope begins as PRESENCE_PRESENT, not as %', state
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE FUNCTION envelopes_record_new() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _actor text := coalesce(current_setting('app.actor', true), '');
    _moment timestamptz := clock_timestamp();
BEGIN
    IF _actor NOT IN ('', 'coordinator', 'gateway') THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a envelope', _actor USING ERRCODE = 'CH002';
    END IF;
    INSERT INTO envelope_history (job_id, from_state, to_state, actor, fence, at)
    SELECT
        after.job_id, NULL,
        CASE WHEN after.presence = 'PRESENCE_PRESENT' THEN after.presence ELSE envelopes_refuse_new(after.presence) END,
        _actor, 0, _moment
    FROM after;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER envelopes_7_record_new AFTER INSERT ON envelopes
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION envelopes_record_new();

-- What has happened stays as it was written, until its envelope is deleted: the history goes with it.
CREATE OR REPLACE FUNCTION envelope_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER envelope_history_keep BEFORE UPDATE OR DELETE ON envelope_history FOR EACH ROW
    EXECUTE FUNCTION envelope_history_refuse();

CREATE OR REPLACE TRIGGER envelope_history_truncate BEFORE TRUNCATE ON envelope_history
    EXECUTE FUNCTION envelope_history_refuse();

CREATE OR REPLACE TRIGGER envelopes_9_truncate BEFORE TRUNCATE ON envelopes
    EXECUTE FUNCTION envelope_history_refuse();

CREATE OR REPLACE FUNCTION envelopes_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM envelope_history USING before WHERE envelope_history.job_id = before.job_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER envelopes_8_forget AFTER DELETE ON envelopes
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT
    EXECUTE FUNCTION envelopes_forget();

-- The only ways to delete for a role that does not own the table.
CREATE OR REPLACE FUNCTION envelopes_remove(_actor text, _key text, _expected text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY DELETE FROM envelopes WHERE envelopes.job_id = _key AND envelopes.presence = _expected RETURNING envelopes.job_id;
END $$;

CREATE OR REPLACE FUNCTION envelopes_purge(_actor text, _older_than double precision, _most integer) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT envelopes.ctid AS place FROM envelopes
        WHERE envelopes.presence IN ('PRESENCE_PRESENT')
        LIMIT _most
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM envelopes USING old WHERE envelopes.ctid = old.place RETURNING envelopes.job_id;
END $$;

REVOKE ALL ON FUNCTION envelopes_remove, envelopes_purge FROM PUBLIC;

-- What runs as the owner means the tables of this schema, whatever the session that calls it has in its path.
DO $$
DECLARE
    _function regprocedure;
BEGIN
    FOR _function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef
            AND proname IN ('envelopes_record', 'envelopes_record_new', 'envelopes_forget', 'envelopes_remove', 'envelopes_purge')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;


-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX envelopes_listed ON envelopes (presence, stored_at_ms DESC, job_id DESC);
