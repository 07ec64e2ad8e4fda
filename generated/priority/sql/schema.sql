-- What priority keeps in PostgreSQL, for a fresh database.
-- Generated from spec/priority (sha256:461d063c7f6f0b75). Do not edit; run `nox -s generate`.
--
-- The guards hold for every session, also for one that a person types in. A session of the service says who
-- acts in the transaction-local setting app.actor; without it only edges are checked, not actors.


-- Every change of every task, copied from Redis. (spec/priority/lifecycle.yaml: entities.task.kept_in.outbox)
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
