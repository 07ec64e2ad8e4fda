-- What priority keeps in PostgreSQL, for a fresh database.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- The guards hold for every session, also for one that a person types in. A session of the service says who
-- acts in the transaction-local setting app.actor; without it only edges are checked, not actors.


-- Every change of every task, copied from Redis. (spec/priority/storage.yaml: redis.entities.task.outbox)
CREATE TABLE task_changes (
    task_id text NOT NULL,
    sequence bigint NOT NULL,
    from_state text,
    to_state text NOT NULL,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    owner text,
    fence bigint NOT NULL,
    reason text,
    trace text,
    CONSTRAINT task_changes_pkey PRIMARY KEY (task_id, sequence)
);

-- Every task that ended, as it was then.
CREATE TABLE ended_tasks (
    task_id text NOT NULL,
    task_type text,
    priority text,
    effective_priority text,
    parameters json,
    required_capabilities json,
    status text,
    retry_count bigint,
    max_retries bigint,
    timeout_seconds bigint,
    base_timeout_seconds bigint,
    created_at timestamptz,
    queued_at timestamptz,
    updated_at timestamptz,
    started_at timestamptz,
    completed_at timestamptz,
    available_at timestamptz,
    deadline_at timestamptz,
    assigned_worker_id text,
    attempt bigint,
    result json,
    error text,
    retriable boolean,
    dead_reason text,
    idempotency_key text,
    digest text,
    trace_id text,
    progress json,
    changes bigint NOT NULL,
    _at timestamptz NOT NULL,
    CONSTRAINT ended_tasks_pkey PRIMARY KEY (task_id)
);

-- What ended first, for whoever takes old history away.
CREATE INDEX ended_tasks_by_end ON ended_tasks (_at);

-- What has happened stays as it was written, until it has ended so long ago that it is forgotten.
CREATE OR REPLACE FUNCTION task_changes_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % is only ever added to', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER task_changes_keep BEFORE UPDATE OR DELETE ON task_changes FOR EACH ROW
    EXECUTE FUNCTION task_changes_refuse();

CREATE OR REPLACE TRIGGER task_changes_truncate BEFORE TRUNCATE ON task_changes
    EXECUTE FUNCTION task_changes_refuse();

-- A record is replaced by a later one of the same task and by nothing else.
CREATE OR REPLACE FUNCTION ended_tasks_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.task_id = OLD.task_id AND NEW.changes > OLD.changes THEN
            RETURN NEW;
        END IF;
    ELSIF TG_OP = 'DELETE' AND current_setting('app.actor', true) = 'historian' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'ILLEGAL_CHANGE: % keeps what ended', TG_TABLE_NAME USING ERRCODE = 'CH003';
END $$;

CREATE OR REPLACE TRIGGER ended_tasks_keep BEFORE UPDATE OR DELETE ON ended_tasks FOR EACH ROW
    EXECUTE FUNCTION ended_tasks_keep();

CREATE OR REPLACE TRIGGER ended_tasks_truncate BEFORE TRUNCATE ON ended_tasks
    EXECUTE FUNCTION ended_tasks_keep();

-- The changes of one that is forgotten go with it.
CREATE OR REPLACE FUNCTION task_changes_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM task_changes USING before WHERE task_changes.task_id = before.task_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER ended_tasks_forget AFTER DELETE ON ended_tasks
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT
    EXECUTE FUNCTION task_changes_forget();

-- Takes away some of those that ended long ago and have not changed since; the only way to for a role that does
-- not own the tables.
CREATE OR REPLACE FUNCTION ended_tasks_forget(_seconds double precision, _most integer) RETURNS SETOF integer
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('app.actor', 'historian', true);
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT gone.ctid AS place FROM ended_tasks AS gone
        WHERE gone._at < clock_timestamp() - _seconds * interval '1 second'
        AND NOT EXISTS (
            SELECT 1 FROM task_changes AS later
            WHERE later.task_id = gone.task_id AND later.sequence > gone.changes
        )
        ORDER BY gone._at LIMIT _most FOR UPDATE SKIP LOCKED
    )
    DELETE FROM ended_tasks USING old WHERE ended_tasks.ctid = old.place RETURNING 1;
END $$;

REVOKE ALL ON FUNCTION ended_tasks_forget(double precision, integer) FROM PUBLIC;

-- What runs as the owner means the tables of this schema, whatever the session that calls it has in its path.
DO $$
DECLARE
    _function regprocedure;
BEGIN
    FOR _function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef AND proname IN ('task_changes_forget', 'ended_tasks_forget')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', _function, current_schema());
    END LOOP;
END $$;
