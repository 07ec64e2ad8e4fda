-- What priority keeps in PostgreSQL, for a fresh database.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- The guards hold for every session, also for one that a person types in. A session of the service says who
-- acts in the transaction-local setting app.actor; without it only edges are checked, not actors.


-- One piece of work with a priority, from its submission to its end. (spec/priority/lifecycle.yaml: entities.task)
CREATE TABLE tasks (
    task_id uuid NOT NULL DEFAULT gen_random_uuid(),
    task_type text NOT NULL,
    priority integer NOT NULL,
    effective_priority integer NOT NULL DEFAULT 0,
    parameters jsonb NOT NULL,
    required_capabilities text[] NOT NULL,
    status text NOT NULL DEFAULT 'QUEUED',
    retry_count integer NOT NULL DEFAULT 0,
    max_retries integer,
    timeout_seconds integer,
    base_timeout_seconds integer,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    completed_at timestamptz,
    available_at timestamptz,
    deadline_at timestamptz,
    assigned_worker_id text,
    attempt integer NOT NULL DEFAULT 0,
    result jsonb,
    error text,
    retriable boolean,
    dead_reason text,
    idempotency_key text,
    digest text,
    trace_id text NOT NULL,
    progress jsonb,
    changes bigint NOT NULL,
    CONSTRAINT tasks_pkey PRIMARY KEY (task_id),
    CONSTRAINT tasks_retry_count_check CHECK (retry_count >= 0),
    CONSTRAINT tasks_max_retries_check CHECK (max_retries >= 0),
    CONSTRAINT tasks_timeout_seconds_check CHECK (timeout_seconds >= 0),
    CONSTRAINT tasks_base_timeout_seconds_check CHECK (base_timeout_seconds >= 0),
    CONSTRAINT tasks_attempt_check CHECK (attempt >= 0),
    CONSTRAINT tasks_changes_check CHECK (changes >= 0),
    CONSTRAINT tasks_lease_held CHECK (status <> 'EXECUTING' OR (assigned_worker_id IS NOT NULL AND deadline_at IS NOT NULL)),
    CONSTRAINT tasks_lease_free CHECK (status IN ('EXECUTING', 'QUEUED') OR (deadline_at IS NULL)),
    CONSTRAINT tasks_status_check CHECK (status IN ('QUEUED', 'EXECUTING', 'COMPLETED', 'FAILED', 'CANCELLED', 'DEAD_LETTER'))
) WITH (
    -- Every transition writes a new version of its row, so room for versions is kept in each page, and dead
    -- ones are taken away long before the usual fifth of the table is dead.
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);


-- Every state change of every task, written by the triggers below and by nobody else.
CREATE TABLE task_history (
    number bigint GENERATED ALWAYS AS IDENTITY,
    task_id uuid NOT NULL,
    from_state text,
    to_state text NOT NULL,
    actor text NOT NULL,
    fence integer NOT NULL,
    at timestamptz NOT NULL,
    edge text,
    owner text,
    reason text,
    trace text,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT task_history_pkey PRIMARY KEY (task_id, number)
);


-- The guards are functions of their own and not conditions of the triggers, because every statement reads and
-- prepares the conditions of its triggers anew: one of this size takes ten times as long as the function.

-- What no edge writes stays as it was created, whoever asks, but for an update that says so in app.update;
-- statements that do not touch it do not come here.
CREATE OR REPLACE FUNCTION tasks_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('app.update', true), '') = 'on' THEN
        RETURN NEW;
    ELSIF NEW.task_type IS DISTINCT FROM OLD.task_type THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: task_type of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.priority IS DISTINCT FROM OLD.priority THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: priority of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.parameters IS DISTINCT FROM OLD.parameters THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: parameters of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.required_capabilities IS DISTINCT FROM OLD.required_capabilities THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: required_capabilities of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.max_retries IS DISTINCT FROM OLD.max_retries THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: max_retries of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.base_timeout_seconds IS DISTINCT FROM OLD.base_timeout_seconds THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: base_timeout_seconds of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.created_at IS DISTINCT FROM OLD.created_at THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: created_at of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: idempotency_key of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.digest IS DISTINCT FROM OLD.digest THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: digest of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.trace_id IS DISTINCT FROM OLD.trace_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: trace_id of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.changes IS DISTINCT FROM OLD.changes THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: changes of a task never changes' USING ERRCODE = 'CH003';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER tasks_1_keep
    BEFORE UPDATE OF task_type, priority, parameters, required_capabilities, max_retries, base_timeout_seconds, created_at, idempotency_key, digest, trace_id, changes ON tasks FOR EACH ROW
    EXECUTE FUNCTION tasks_keep();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE FUNCTION tasks_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
    edge text := coalesce(current_setting('app.edge', true), '');
BEGIN
    IF NEW.task_id <> OLD.task_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: task_id of a task never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.attempt < OLD.attempt THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: attempt of a task is never lowered' USING ERRCODE = 'CH003';
    ELSIF (OLD.status <> NEW.status) IS NOT TRUE THEN
        RETURN NEW;
    ELSIF (CASE OLD.status
        WHEN 'QUEUED' THEN
            NEW.status = 'EXECUTING' AND (actor IN ('', 'worker'))
            OR NEW.status = 'CANCELLED' AND (actor IN ('', 'admin', 'client'))
        WHEN 'EXECUTING' THEN
            NEW.status = 'QUEUED' AND edge NOT IN ('give_back') AND (actor IN ('', 'detector', 'worker'))
            OR NEW.status = 'QUEUED' AND edge = 'give_back' AND (actor IN ('', 'worker'))
            OR NEW.status = 'COMPLETED' AND (actor IN ('', 'worker'))
            OR NEW.status = 'FAILED' AND (actor IN ('', 'worker'))
            OR NEW.status = 'CANCELLED' AND (actor IN ('', 'admin', 'client'))
            OR NEW.status = 'DEAD_LETTER' AND (actor IN ('', 'detector', 'worker'))
        WHEN 'DEAD_LETTER' THEN
            NEW.status = 'QUEUED' AND (actor IN ('', 'admin'))
        ELSE false
    END) THEN
        RETURN NEW;
    ELSIF (OLD.status, NEW.status) IN (
        ('QUEUED', 'EXECUTING'),
        ('QUEUED', 'CANCELLED'),
        ('EXECUTING', 'QUEUED'),
        ('EXECUTING', 'QUEUED'),
        ('EXECUTING', 'COMPLETED'),
        ('EXECUTING', 'FAILED'),
        ('EXECUTING', 'CANCELLED'),
        ('EXECUTING', 'DEAD_LETTER'),
        ('DEAD_LETTER', 'QUEUED')
    ) THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not move this task from % to %', actor, OLD.status, NEW.status
            USING ERRCODE = 'CH002';
    END IF;
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a task never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE TRIGGER tasks_2_move BEFORE UPDATE ON tasks FOR EACH ROW
    EXECUTE FUNCTION tasks_move();

-- A holder whose lease has ended writes nothing, however long it waited for the row: no row is changed then.
CREATE OR REPLACE FUNCTION tasks_too_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status = 'EXECUTING' AND coalesce(current_setting('app.actor', true), '') IN ('worker') AND OLD.assigned_worker_id <> '' THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER tasks_3_lease BEFORE UPDATE ON tasks FOR EACH ROW
    WHEN (OLD.deadline_at <= clock_timestamp())
    EXECUTE FUNCTION tasks_too_late();

-- Completes a transition that was typed by hand. Those of the service are complete and do not come here.
CREATE OR REPLACE FUNCTION tasks_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.updated_at = OLD.updated_at THEN
        NEW.updated_at := greatest(clock_timestamp(), OLD.updated_at);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER tasks_4_complete BEFORE UPDATE ON tasks FOR EACH ROW
    WHEN (
        OLD.status <> NEW.status AND (
            NEW.updated_at = OLD.updated_at

        )
    )
    EXECUTE FUNCTION tasks_complete();

-- Nothing is deleted but what the lifecycle lets, and by whom.
CREATE OR REPLACE FUNCTION tasks_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    -- What has ended long enough ago is forgotten.
    IF coalesce(current_setting('app.forget', true), '') = 'on' AND OLD.status IN ('CANCELLED', 'COMPLETED', 'FAILED') THEN
        RETURN OLD;
    END IF;
    IF actor IN ('admin', 'sweeper') AND OLD.status IN ('DEAD_LETTER') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not delete a task that is %', coalesce(nullif(actor, ''), 'a session without app.actor'), OLD.status
        USING ERRCODE = 'CH002';
END $$;

CREATE OR REPLACE TRIGGER tasks_5_delete BEFORE DELETE ON tasks FOR EACH ROW
    EXECUTE FUNCTION tasks_delete();

-- Appends to the history, once for all rows of a statement. Both sides have the same rows, so they are joined by
-- hash, whatever the session that runs the statement thinks of hash joins, and however few rows the first
-- statement of the session had: its plan is kept, and a loop in a loop would take a hundred times as long for
-- ten times as many.
CREATE OR REPLACE FUNCTION tasks_record() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET enable_hashjoin = on SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO task_history (task_id, from_state, to_state, actor, fence, at, edge, owner, reason, trace)
    SELECT
        after.task_id, before.status, after.status, coalesce(current_setting('app.actor', true), ''),
        after.attempt, clock_timestamp(),
        CASE
            WHEN before.status = 'QUEUED' AND after.status = 'EXECUTING' THEN 'claim'
            WHEN before.status = 'EXECUTING' AND after.status = 'COMPLETED' THEN 'complete'
            WHEN before.status = 'EXECUTING' AND after.status = 'FAILED' THEN 'fail'
            WHEN before.status = 'EXECUTING' AND after.status = 'QUEUED' THEN CASE WHEN coalesce(current_setting('app.edge', true), '') IN ('give_back') THEN current_setting('app.edge') ELSE 'retry' END
            WHEN before.status = 'EXECUTING' AND after.status = 'DEAD_LETTER' THEN 'bury'
            WHEN before.status = 'QUEUED' AND after.status = 'CANCELLED' THEN 'cancel'
            WHEN before.status = 'EXECUTING' AND after.status = 'CANCELLED' THEN 'abort'
            WHEN before.status = 'DEAD_LETTER' AND after.status = 'QUEUED' THEN 'replay'
        END,
        coalesce(nullif(after.assigned_worker_id, ''), before.assigned_worker_id), current_setting('app.reason', true), current_setting('app.trace', true)
    FROM before JOIN after USING (task_id)
    WHERE before.status <> after.status;
    -- Whoever waits for something to take may look now. What it finds is decided by the table alone.
    IF EXISTS (SELECT FROM after WHERE status = 'QUEUED') THEN
        PERFORM pg_notify('tasks', '');
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tasks_6_record AFTER UPDATE ON tasks
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION tasks_record();

-- Entities begin in one state, and only some may create them; this is checked while the history is written.
CREATE OR REPLACE FUNCTION tasks_refuse_new(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a task begins as QUEUED, not as %', state
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE FUNCTION tasks_record_new() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _actor text := coalesce(current_setting('app.actor', true), '');
    _moment timestamptz := clock_timestamp();
BEGIN
    IF _actor NOT IN ('', 'admin', 'client', 'worker') THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a task', _actor USING ERRCODE = 'CH002';
    END IF;
    INSERT INTO task_history (task_id, from_state, to_state, actor, fence, at)
    SELECT
        after.task_id, NULL,
        CASE WHEN after.status = 'QUEUED' THEN after.status ELSE tasks_refuse_new(after.status) END,
        _actor, after.attempt, _moment
    FROM after;
    PERFORM pg_notify('tasks', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tasks_7_record_new AFTER INSERT ON tasks
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION tasks_record_new();

-- What has happened stays as it was written, until its task is deleted: the history goes with it.
CREATE OR REPLACE FUNCTION task_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER task_history_keep BEFORE UPDATE OR DELETE ON task_history FOR EACH ROW
    EXECUTE FUNCTION task_history_refuse();

CREATE OR REPLACE TRIGGER task_history_truncate BEFORE TRUNCATE ON task_history
    EXECUTE FUNCTION task_history_refuse();

CREATE OR REPLACE TRIGGER tasks_9_truncate BEFORE TRUNCATE ON tasks
    EXECUTE FUNCTION task_history_refuse();

CREATE OR REPLACE FUNCTION tasks_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM task_history USING before WHERE task_history.task_id = before.task_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tasks_8_forget AFTER DELETE ON tasks
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT
    EXECUTE FUNCTION tasks_forget();

-- Forgets what ended so many seconds ago, and all but the last so many that have ended, each unless it is NULL.
-- Returns the seconds until the next one is due, by the time alone.
CREATE OR REPLACE FUNCTION tasks_forget_ended(_seconds double precision, _most bigint) RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _keys uuid[];
BEGIN
    IF _seconds IS NOT NULL THEN
        SELECT array_agg(_ended.key) INTO _keys FROM (
            SELECT task_id AS key FROM task_history
            WHERE to_state IN ('CANCELLED', 'COMPLETED', 'FAILED') AND at <= (SELECT clock_timestamp() - _seconds * interval '1 second')
            ORDER BY at
            LIMIT 10000
        ) AS _ended;
    END IF;
    IF _most IS NOT NULL THEN
        SELECT coalesce(_keys, '{}') || coalesce(array_agg(_ended.key), '{}') INTO _keys FROM (
            SELECT task_id AS key FROM task_history
            WHERE to_state IN ('CANCELLED', 'COMPLETED', 'FAILED')
            ORDER BY number DESC
            OFFSET _most
            LIMIT 10000
        ) AS _ended;
    END IF;
    IF cardinality(_keys) > 0 THEN
        PERFORM set_config('app.forget', 'on', true);
        -- Another session that is about to forget one does so.
        WITH old AS MATERIALIZED (
            SELECT tasks.ctid AS place FROM tasks
            WHERE tasks.task_id = ANY(_keys) AND tasks.status IN ('CANCELLED', 'COMPLETED', 'FAILED')
            FOR UPDATE SKIP LOCKED
        )
        DELETE FROM tasks USING old WHERE tasks.ctid = old.place;
        PERFORM set_config('app.forget', '', true);
    END IF;
    RETURN (
        SELECT extract(epoch FROM min(at) - clock_timestamp()) + _seconds
        FROM task_history WHERE to_state IN ('CANCELLED', 'COMPLETED', 'FAILED')
    );
END $$;

REVOKE ALL ON FUNCTION tasks_forget_ended FROM PUBLIC;

-- The only ways to delete for a role that does not own the table.
CREATE OR REPLACE FUNCTION tasks_remove(_actor text, _key uuid, _expected text) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY DELETE FROM tasks WHERE tasks.task_id = _key AND tasks.status = _expected RETURNING tasks.task_id;
END $$;

CREATE OR REPLACE FUNCTION tasks_purge(_actor text, _older_than double precision, _most integer) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT tasks.ctid AS place FROM tasks
        WHERE tasks.status IN ('DEAD_LETTER')
            AND tasks.updated_at < (SELECT clock_timestamp() - _older_than * interval '1 second')
        LIMIT _most
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM tasks USING old WHERE tasks.ctid = old.place RETURNING tasks.task_id;
END $$;

REVOKE ALL ON FUNCTION tasks_remove, tasks_purge FROM PUBLIC;

-- What runs as the owner means the tables of this schema, whatever the session that calls it has in its path.
DO $$
DECLARE
    _function regprocedure;
BEGIN
    FOR _function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef
            AND proname IN ('tasks_record', 'tasks_record_new', 'tasks_forget', 'tasks_forget_ended', 'tasks_remove', 'tasks_purge')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;


-- The next one to be taken.
CREATE INDEX tasks_acquirable ON tasks (effective_priority, queued_at, task_id) WHERE status = 'QUEUED';
-- What is due to retry.
CREATE INDEX tasks_due_retry ON tasks (deadline_at) WHERE status = 'EXECUTING';
-- What is due to raise_low.
CREATE INDEX tasks_due_raise_low ON tasks (queued_at) WHERE status IN ('QUEUED');
-- What is due to raise_medium.
CREATE INDEX tasks_due_raise_medium ON tasks (queued_at) WHERE status IN ('QUEUED');
-- What is due to release.
CREATE INDEX tasks_due_release ON tasks (available_at) WHERE status IN ('QUEUED');
-- What each holder has.
CREATE INDEX tasks_held ON tasks (assigned_worker_id) WHERE status = 'EXECUTING';
-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX tasks_listed ON tasks (status, updated_at DESC, task_id DESC);
-- What has ended, by when.
CREATE INDEX task_history_ended ON task_history (at) WHERE to_state IN ('CANCELLED', 'COMPLETED', 'FAILED');

-- Values that no two share for some time.
CREATE TABLE tasks_values (
    field text NOT NULL,
    value text NOT NULL,
    key uuid NOT NULL REFERENCES tasks ON DELETE CASCADE,
    until timestamptz NOT NULL,
    CONSTRAINT tasks_values_pkey PRIMARY KEY (field, value)
);
CREATE INDEX tasks_values_key ON tasks_values (key);

-- Values of effective_priority that are not served at present.
CREATE TABLE tasks_paused (value bigint NOT NULL, CONSTRAINT tasks_paused_pkey PRIMARY KEY (value));


-- A process that runs tasks, as long as it is heard of. (spec/priority/lifecycle.yaml: entities.worker)
CREATE TABLE workers (
    worker_id uuid NOT NULL DEFAULT gen_random_uuid(),
    status text NOT NULL DEFAULT 'ACTIVE',
    capacity integer NOT NULL,
    capabilities text[] NOT NULL,
    version text,
    reported_load integer,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_heartbeat timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changes bigint NOT NULL,
    CONSTRAINT workers_pkey PRIMARY KEY (worker_id),
    CONSTRAINT workers_capacity_check CHECK (capacity >= 0),
    CONSTRAINT workers_reported_load_check CHECK (reported_load >= 0),
    CONSTRAINT workers_changes_check CHECK (changes >= 0),
    CONSTRAINT workers_status_check CHECK (status IN ('ACTIVE', 'DRAINING', 'DEAD'))
) WITH (
    -- Every transition writes a new version of its row, so room for versions is kept in each page, and dead
    -- ones are taken away long before the usual fifth of the table is dead.
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);


-- Every state change of every worker, written by the triggers below and by nobody else.
CREATE TABLE worker_history (
    number bigint GENERATED ALWAYS AS IDENTITY,
    worker_id uuid NOT NULL,
    from_state text,
    to_state text NOT NULL,
    actor text NOT NULL,
    fence integer NOT NULL,
    at timestamptz NOT NULL,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT worker_history_pkey PRIMARY KEY (worker_id, number)
);


-- The guards are functions of their own and not conditions of the triggers, because every statement reads and
-- prepares the conditions of its triggers anew: one of this size takes ten times as long as the function.

-- What no edge writes stays as it was created, whoever asks, but for an update that says so in app.update;
-- statements that do not touch it do not come here.
CREATE OR REPLACE FUNCTION workers_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('app.update', true), '') = 'on' THEN
        RETURN NEW;
    ELSIF NEW.capacity IS DISTINCT FROM OLD.capacity THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: capacity of a worker never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.capabilities IS DISTINCT FROM OLD.capabilities THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: capabilities of a worker never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.version IS DISTINCT FROM OLD.version THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: version of a worker never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.registered_at IS DISTINCT FROM OLD.registered_at THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: registered_at of a worker never changes' USING ERRCODE = 'CH003';
    ELSIF NEW.changes IS DISTINCT FROM OLD.changes THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: changes of a worker never changes' USING ERRCODE = 'CH003';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER workers_1_keep
    BEFORE UPDATE OF capacity, capabilities, version, registered_at, changes ON workers FOR EACH ROW
    EXECUTE FUNCTION workers_keep();

-- Which edges there are, and who may drive each.
CREATE OR REPLACE FUNCTION workers_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    IF NEW.worker_id <> OLD.worker_id THEN
        RAISE EXCEPTION 'ILLEGAL_CHANGE: worker_id of a worker never changes' USING ERRCODE = 'CH003';
    ELSIF (OLD.status <> NEW.status) IS NOT TRUE THEN
        RETURN NEW;
    ELSIF (CASE OLD.status
        WHEN 'ACTIVE' THEN
            NEW.status = 'DRAINING' AND (actor IN ('', 'worker'))
            OR NEW.status = 'DEAD' AND (actor IN ('', 'detector'))
        WHEN 'DRAINING' THEN
            NEW.status = 'ACTIVE' AND (actor IN ('', 'worker'))
            OR NEW.status = 'DEAD' AND (actor IN ('', 'detector'))
        ELSE false
    END) THEN
        RETURN NEW;
    ELSIF (OLD.status, NEW.status) IN (
        ('ACTIVE', 'DRAINING'),
        ('ACTIVE', 'DEAD'),
        ('DRAINING', 'ACTIVE'),
        ('DRAINING', 'DEAD')
    ) THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not move this worker from % to %', actor, OLD.status, NEW.status
            USING ERRCODE = 'CH002';
    END IF;
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a worker never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE TRIGGER workers_2_move BEFORE UPDATE ON workers FOR EACH ROW
    EXECUTE FUNCTION workers_move();

-- Completes a transition that was typed by hand. Those of the service are complete and do not come here.
CREATE OR REPLACE FUNCTION workers_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.updated_at = OLD.updated_at THEN
        NEW.updated_at := greatest(clock_timestamp(), OLD.updated_at);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER workers_4_complete BEFORE UPDATE ON workers FOR EACH ROW
    WHEN (
        OLD.status <> NEW.status AND (
            NEW.updated_at = OLD.updated_at

        )
    )
    EXECUTE FUNCTION workers_complete();

-- Nothing is deleted but what the lifecycle lets, and by whom.
CREATE OR REPLACE FUNCTION workers_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor text := coalesce(current_setting('app.actor', true), '');
BEGIN
    -- What has ended long enough ago is forgotten.
    IF coalesce(current_setting('app.forget', true), '') = 'on' AND OLD.status IN ('DEAD') THEN
        RETURN OLD;
    END IF;
    IF actor IN ('worker') AND OLD.status IN ('ACTIVE', 'DRAINING') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not delete a worker that is %', coalesce(nullif(actor, ''), 'a session without app.actor'), OLD.status
        USING ERRCODE = 'CH002';
END $$;

CREATE OR REPLACE TRIGGER workers_5_delete BEFORE DELETE ON workers FOR EACH ROW
    EXECUTE FUNCTION workers_delete();

-- Appends to the history, once for all rows of a statement. Both sides have the same rows, so they are joined by
-- hash, whatever the session that runs the statement thinks of hash joins, and however few rows the first
-- statement of the session had: its plan is kept, and a loop in a loop would take a hundred times as long for
-- ten times as many.
CREATE OR REPLACE FUNCTION workers_record() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET enable_hashjoin = on SET enable_nestloop = off AS $$
BEGIN
    INSERT INTO worker_history (worker_id, from_state, to_state, actor, fence, at)
    SELECT
        after.worker_id, before.status, after.status, coalesce(current_setting('app.actor', true), ''),
        0, clock_timestamp()
    FROM before JOIN after USING (worker_id)
    WHERE before.status <> after.status;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER workers_6_record AFTER UPDATE ON workers
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION workers_record();

-- Entities begin in one state, and only some may create them; this is checked while the history is written.
CREATE OR REPLACE FUNCTION workers_refuse_new(state text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ILLEGAL_TRANSITION: a worker begins as ACTIVE, not as %', state
        USING ERRCODE = 'CH001';
END $$;

CREATE OR REPLACE FUNCTION workers_record_new() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _actor text := coalesce(current_setting('app.actor', true), '');
    _moment timestamptz := clock_timestamp();
BEGIN
    IF _actor NOT IN ('', 'worker') THEN
        RAISE EXCEPTION 'ACTOR_NOT_ALLOWED: % may not create a worker', _actor USING ERRCODE = 'CH002';
    END IF;
    INSERT INTO worker_history (worker_id, from_state, to_state, actor, fence, at)
    SELECT
        after.worker_id, NULL,
        CASE WHEN after.status = 'ACTIVE' THEN after.status ELSE workers_refuse_new(after.status) END,
        _actor, 0, _moment
    FROM after;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER workers_7_record_new AFTER INSERT ON workers
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION workers_record_new();

-- What has happened stays as it was written, until its worker is deleted: the history goes with it.
CREATE OR REPLACE FUNCTION worker_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER worker_history_keep BEFORE UPDATE OR DELETE ON worker_history FOR EACH ROW
    EXECUTE FUNCTION worker_history_refuse();

CREATE OR REPLACE TRIGGER worker_history_truncate BEFORE TRUNCATE ON worker_history
    EXECUTE FUNCTION worker_history_refuse();

CREATE OR REPLACE TRIGGER workers_9_truncate BEFORE TRUNCATE ON workers
    EXECUTE FUNCTION worker_history_refuse();

CREATE OR REPLACE FUNCTION workers_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM worker_history USING before WHERE worker_history.worker_id = before.worker_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER workers_8_forget AFTER DELETE ON workers
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT
    EXECUTE FUNCTION workers_forget();

-- Forgets what ended so many seconds ago, and all but the last so many that have ended, each unless it is NULL.
-- Returns the seconds until the next one is due, by the time alone.
CREATE OR REPLACE FUNCTION workers_forget_ended(_seconds double precision, _most bigint) RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    _keys uuid[];
BEGIN
    IF _seconds IS NOT NULL THEN
        SELECT array_agg(_ended.key) INTO _keys FROM (
            SELECT worker_id AS key FROM worker_history
            WHERE to_state IN ('DEAD') AND at <= (SELECT clock_timestamp() - _seconds * interval '1 second')
            ORDER BY at
            LIMIT 10000
        ) AS _ended;
    END IF;
    IF _most IS NOT NULL THEN
        SELECT coalesce(_keys, '{}') || coalesce(array_agg(_ended.key), '{}') INTO _keys FROM (
            SELECT worker_id AS key FROM worker_history
            WHERE to_state IN ('DEAD')
            ORDER BY number DESC
            OFFSET _most
            LIMIT 10000
        ) AS _ended;
    END IF;
    IF cardinality(_keys) > 0 THEN
        PERFORM set_config('app.forget', 'on', true);
        -- Another session that is about to forget one does so.
        WITH old AS MATERIALIZED (
            SELECT workers.ctid AS place FROM workers
            WHERE workers.worker_id = ANY(_keys) AND workers.status IN ('DEAD')
            FOR UPDATE SKIP LOCKED
        )
        DELETE FROM workers USING old WHERE workers.ctid = old.place;
        PERFORM set_config('app.forget', '', true);
    END IF;
    RETURN (
        SELECT extract(epoch FROM min(at) - clock_timestamp()) + _seconds
        FROM worker_history WHERE to_state IN ('DEAD')
    );
END $$;

REVOKE ALL ON FUNCTION workers_forget_ended FROM PUBLIC;

-- The only ways to delete for a role that does not own the table.
CREATE OR REPLACE FUNCTION workers_remove(_actor text, _key uuid, _expected text) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY DELETE FROM workers WHERE workers.worker_id = _key AND workers.status = _expected RETURNING workers.worker_id;
END $$;

CREATE OR REPLACE FUNCTION workers_purge(_actor text, _older_than double precision, _most integer) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', _actor, true);
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT workers.ctid AS place FROM workers
        WHERE workers.status IN ('ACTIVE', 'DRAINING')
            AND greatest(workers.registered_at, workers.last_heartbeat, workers.updated_at) < (SELECT clock_timestamp() - _older_than * interval '1 second')
            AND NOT EXISTS (SELECT FROM tasks AS held WHERE held.assigned_worker_id = workers.worker_id::text AND held.status = 'EXECUTING')
        LIMIT _most
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM workers USING old WHERE workers.ctid = old.place RETURNING workers.worker_id;
END $$;

REVOKE ALL ON FUNCTION workers_remove, workers_purge FROM PUBLIC;

-- What runs as the owner means the tables of this schema, whatever the session that calls it has in its path.
DO $$
DECLARE
    _function regprocedure;
BEGIN
    FOR _function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef
            AND proname IN ('workers_record', 'workers_record_new', 'workers_forget', 'workers_forget_ended', 'workers_remove', 'workers_purge')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;


-- What is due to lose.
CREATE INDEX workers_due_lose ON workers (last_heartbeat) WHERE status = 'ACTIVE';
-- What is due to lose_draining.
CREATE INDEX workers_due_lose_draining ON workers (last_heartbeat) WHERE status = 'DRAINING';
-- Listings, by state and newest first; also what is due by the same time.
CREATE INDEX workers_listed ON workers (status, updated_at DESC, worker_id DESC);
-- What has ended, by when.
CREATE INDEX worker_history_ended ON worker_history (at) WHERE to_state IN ('DEAD');
