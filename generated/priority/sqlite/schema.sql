-- What priority keeps in a SQLite file, for a fresh one.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- The guards hold for everybody, also for what a person types in: an edge that the lifecycle does not have is
-- refused, and so is a deletion that it does not let.

-- One piece of work with a priority, from its submission to its end. (spec/priority/lifecycle.yaml: entities.task)
CREATE TABLE tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL,
    task_type TEXT NOT NULL,
    priority INTEGER NOT NULL,
    effective_priority INTEGER NOT NULL DEFAULT 0,
    parameters TEXT NOT NULL,
    required_capabilities TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'queued',
    retry_count INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER,
    timeout_seconds INTEGER,
    base_timeout_seconds INTEGER,
    created_at INTEGER NOT NULL DEFAULT 0,
    queued_at INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER,
    completed_at INTEGER,
    available_at INTEGER,
    deadline_at INTEGER,
    assigned_worker_id TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    result TEXT,
    error TEXT,
    retriable INTEGER,
    dead_reason TEXT,
    idempotency_key TEXT,
    digest TEXT,
    trace_id TEXT NOT NULL,
    progress TEXT,
    changes INTEGER NOT NULL,
    UNIQUE (task_id),
    CHECK (status IN ('queued', 'executing', 'completed', 'failed', 'cancelled', 'dead_letter')),
    CHECK (retry_count >= 0),
    CHECK (max_retries >= 0),
    CHECK (timeout_seconds >= 0),
    CHECK (base_timeout_seconds >= 0),
    CHECK (attempt >= 0),
    CHECK (changes >= 0),
    CHECK (status <> 'executing' OR assigned_worker_id IS NOT NULL)
) STRICT;

-- How many there are in each state, so that nobody has to count them.
CREATE TABLE tasks_in_state (
    status TEXT PRIMARY KEY,
    entities INTEGER NOT NULL CHECK (entities >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO tasks_in_state (status, entities)
VALUES ('queued', 0), ('executing', 0), ('completed', 0), ('failed', 0), ('cancelled', 0), ('dead_letter', 0);

-- Every state change, oldest first.
CREATE TABLE task_history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    edge TEXT,
    owner TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    trace TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX task_history_of ON task_history (task_id, number);

-- Values of effective_priority that are not served at present.
CREATE TABLE tasks_paused (value INTEGER PRIMARY KEY) STRICT;

-- Values that no two entities share until a time.
CREATE TABLE tasks_unique (
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    owner TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (field, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_unique_of ON tasks_unique (owner);

-- Those that have ended, in that order, and when each is forgotten.
CREATE TABLE tasks_ended (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    entity TEXT NOT NULL UNIQUE,
    until INTEGER
) STRICT;

CREATE INDEX tasks_ended_until ON tasks_ended (until) WHERE until IS NOT NULL;

-- An entity begins in one state.
CREATE TRIGGER tasks_1_create BEFORE INSERT ON tasks
WHEN NEW.status <> 'queued'
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: a task begins as QUEUED');
END;

-- Which edges there are.
CREATE TRIGGER tasks_2_move BEFORE UPDATE OF status ON tasks
WHEN OLD.status <> NEW.status AND NOT CASE OLD.status
    WHEN 'queued' THEN NEW.status IN ('executing', 'cancelled')
    WHEN 'executing' THEN NEW.status IN ('queued', 'completed', 'failed', 'cancelled', 'dead_letter')
    WHEN 'dead_letter' THEN NEW.status IN ('queued')
    ELSE FALSE
END
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the lifecycle of a task has no such edge');
END;

-- What never changes, and what never falls.
CREATE TRIGGER tasks_3_keep BEFORE UPDATE ON tasks
WHEN NEW.task_id <> OLD.task_id OR NEW.attempt < OLD.attempt
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: the key of a task never changes, and its counts never fall');
END;

-- What may be deleted.
CREATE TRIGGER tasks_4_delete BEFORE DELETE ON tasks
WHEN OLD.status NOT IN ('dead_letter', 'completed', 'failed', 'cancelled')
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: this task is never deleted');
END;

CREATE TRIGGER tasks_5_count_new AFTER INSERT ON tasks
BEGIN
    UPDATE tasks_in_state SET entities = entities + 1 WHERE status = NEW.status;
END;

CREATE TRIGGER tasks_6_count_moved AFTER UPDATE OF status ON tasks
WHEN OLD.status <> NEW.status
BEGIN
    UPDATE tasks_in_state SET entities = entities - 1 WHERE status = OLD.status;
    UPDATE tasks_in_state SET entities = entities + 1 WHERE status = NEW.status;
END;

CREATE TRIGGER tasks_7_count_gone AFTER DELETE ON tasks
BEGIN
    UPDATE tasks_in_state SET entities = entities - 1 WHERE status = OLD.status;
END;

-- The next one to be taken.
CREATE INDEX tasks_acquirable ON tasks (effective_priority, required_capabilities, queued_at, number) WHERE status = 'queued' AND available_at IS NULL;

-- Leases by their owner.
CREATE INDEX tasks_held ON tasks (assigned_worker_id, task_id) WHERE status = 'executing';

-- Those that are due to retry.
CREATE INDEX tasks_retry ON tasks (deadline_at) WHERE status = 'executing';

-- Those that are due to raise_low.
CREATE INDEX tasks_raise_low ON tasks (queued_at) WHERE status = 'queued' AND effective_priority = 3;

-- Those that are due to raise_medium.
CREATE INDEX tasks_raise_medium ON tasks (queued_at) WHERE status = 'queued' AND effective_priority = 2;

-- Those that are due to release.
CREATE INDEX tasks_release ON tasks (available_at) WHERE status = 'queued';

-- Those that are due to delete.
CREATE INDEX tasks_delete ON tasks (completed_at) WHERE status = 'dead_letter';

-- Those that a ceiling counts.
CREATE INDEX tasks_counted ON tasks (task_id) WHERE status = 'queued' AND available_at IS NULL;

-- The listing.
CREATE INDEX tasks_listed ON tasks (updated_at, number);

-- The listing of some states.
CREATE INDEX tasks_listed_by_state ON tasks (status, updated_at, number);

-- A process that runs tasks, as long as it is heard of. (spec/priority/lifecycle.yaml: entities.worker)
CREATE TABLE workers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    worker_id TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'active',
    capacity INTEGER NOT NULL,
    capabilities TEXT NOT NULL,
    version TEXT,
    reported_load INTEGER,
    registered_at INTEGER NOT NULL DEFAULT 0,
    last_heartbeat INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL,
    UNIQUE (worker_id),
    CHECK (status IN ('active', 'draining', 'dead')),
    CHECK (capacity >= 0),
    CHECK (reported_load >= 0),
    CHECK (changes >= 0)
) STRICT;

-- How many there are in each state, so that nobody has to count them.
CREATE TABLE workers_in_state (
    status TEXT PRIMARY KEY,
    entities INTEGER NOT NULL CHECK (entities >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO workers_in_state (status, entities)
VALUES ('active', 0), ('draining', 0), ('dead', 0);

-- Every state change, oldest first.
CREATE TABLE worker_history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    worker_id TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX worker_history_of ON worker_history (worker_id, number);

-- Those that have ended, in that order, and when each is forgotten.
CREATE TABLE workers_ended (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    entity TEXT NOT NULL UNIQUE,
    until INTEGER
) STRICT;

CREATE INDEX workers_ended_until ON workers_ended (until) WHERE until IS NOT NULL;

-- An entity begins in one state.
CREATE TRIGGER workers_1_create BEFORE INSERT ON workers
WHEN NEW.status <> 'active'
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: a worker begins as ACTIVE');
END;

-- Which edges there are.
CREATE TRIGGER workers_2_move BEFORE UPDATE OF status ON workers
WHEN OLD.status <> NEW.status AND NOT CASE OLD.status
    WHEN 'active' THEN NEW.status IN ('draining', 'dead')
    WHEN 'draining' THEN NEW.status IN ('active', 'dead')
    ELSE FALSE
END
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the lifecycle of a worker has no such edge');
END;

-- What never changes, and what never falls.
CREATE TRIGGER workers_3_keep BEFORE UPDATE ON workers
WHEN NEW.worker_id <> OLD.worker_id
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: the key of a worker never changes, and its counts never fall');
END;

-- What may be deleted.
CREATE TRIGGER workers_4_delete BEFORE DELETE ON workers
WHEN OLD.status NOT IN ('active', 'draining', 'dead')
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: this worker is never deleted');
END;

CREATE TRIGGER workers_5_count_new AFTER INSERT ON workers
BEGIN
    UPDATE workers_in_state SET entities = entities + 1 WHERE status = NEW.status;
END;

CREATE TRIGGER workers_6_count_moved AFTER UPDATE OF status ON workers
WHEN OLD.status <> NEW.status
BEGIN
    UPDATE workers_in_state SET entities = entities - 1 WHERE status = OLD.status;
    UPDATE workers_in_state SET entities = entities + 1 WHERE status = NEW.status;
END;

CREATE TRIGGER workers_7_count_gone AFTER DELETE ON workers
BEGIN
    UPDATE workers_in_state SET entities = entities - 1 WHERE status = OLD.status;
END;

-- Those that are due to lose.
CREATE INDEX workers_lose ON workers (last_heartbeat) WHERE status = 'active';

-- Those that are due to lose_draining.
CREATE INDEX workers_lose_draining ON workers (last_heartbeat) WHERE status = 'draining';

-- The listing.
CREATE INDEX workers_listed ON workers (updated_at, number);

-- The listing of some states.
CREATE INDEX workers_listed_by_state ON workers (status, updated_at, number);
