-- What orchestrator keeps in a SQLite file, for a fresh one.
-- Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
--
-- The guards hold for everybody, also for what a person types in: an edge that the lifecycle does not have is
-- refused, and so is a deletion that it does not let.

-- One piece of work, from the wish to have it done to its end. (spec/orchestrator/lifecycle.yaml: entities.job)
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    job_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'CREATED',
    retry_count INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_expiry INTEGER,
    next_attempt_at INTEGER,
    created_at INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL DEFAULT 0,
    result TEXT,
    last_error TEXT,
    UNIQUE (job_id),
    CHECK (state IN ('CREATED', 'QUEUED', 'RUNNING', 'SUCCESS', 'RETRY', 'DEAD')),
    CHECK (retry_count >= 0),
    CHECK (attempt >= 0),
    CHECK (state <> 'RUNNING' OR lease_owner IS NOT NULL)
) STRICT;

-- How many there are in each state, so that nobody has to count them.
CREATE TABLE jobs_in_state (
    state TEXT PRIMARY KEY,
    entities INTEGER NOT NULL CHECK (entities >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO jobs_in_state (state, entities)
VALUES ('CREATED', 0), ('QUEUED', 0), ('RUNNING', 0), ('SUCCESS', 0), ('RETRY', 0), ('DEAD', 0);

-- Every state change, oldest first.
CREATE TABLE job_history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    edge TEXT
) STRICT;

CREATE INDEX job_history_of ON job_history (job_id, number);

-- An entity begins in one state.
CREATE TRIGGER jobs_1_create BEFORE INSERT ON jobs
WHEN NEW.state <> 'CREATED'
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: a job begins as CREATED');
END;

-- Which edges there are.
CREATE TRIGGER jobs_2_move BEFORE UPDATE OF state ON jobs
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'CREATED' THEN NEW.state IN ('QUEUED')
    WHEN 'QUEUED' THEN NEW.state IN ('RUNNING')
    WHEN 'RUNNING' THEN NEW.state IN ('SUCCESS', 'RETRY')
    WHEN 'RETRY' THEN NEW.state IN ('QUEUED', 'DEAD')
    ELSE FALSE
END
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the lifecycle of a job has no such edge');
END;

-- What never changes, and what never falls.
CREATE TRIGGER jobs_3_keep BEFORE UPDATE ON jobs
WHEN NEW.job_id <> OLD.job_id OR NEW.retry_count < OLD.retry_count OR NEW.attempt < OLD.attempt
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: the key of a job never changes, and its counts never fall');
END;

-- What may be deleted.
CREATE TRIGGER jobs_4_delete BEFORE DELETE ON jobs
WHEN OLD.state NOT IN ('SUCCESS', 'DEAD')
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: this job is never deleted');
END;

CREATE TRIGGER jobs_5_count_new AFTER INSERT ON jobs
BEGIN
    UPDATE jobs_in_state SET entities = entities + 1 WHERE state = NEW.state;
END;

CREATE TRIGGER jobs_6_count_moved AFTER UPDATE OF state ON jobs
WHEN OLD.state <> NEW.state
BEGIN
    UPDATE jobs_in_state SET entities = entities - 1 WHERE state = OLD.state;
    UPDATE jobs_in_state SET entities = entities + 1 WHERE state = NEW.state;
END;

CREATE TRIGGER jobs_7_count_gone AFTER DELETE ON jobs
BEGIN
    UPDATE jobs_in_state SET entities = entities - 1 WHERE state = OLD.state;
END;

-- The next one to be taken.
CREATE INDEX jobs_acquirable ON jobs (created_at, number) WHERE state = 'QUEUED';

-- Those that are due to accept.
CREATE INDEX jobs_accept ON jobs (created_at) WHERE state = 'CREATED';

-- Those that are due to fail.
CREATE INDEX jobs_fail ON jobs (lease_expiry) WHERE state = 'RUNNING';

-- Those that are due to requeue.
CREATE INDEX jobs_requeue ON jobs (next_attempt_at) WHERE state = 'RETRY';

-- The listing.
CREATE INDEX jobs_listed ON jobs (created_at, number);

-- The listing of some states.
CREATE INDEX jobs_listed_by_state ON jobs (state, created_at, number);

CREATE UNIQUE INDEX jobs_one_idempotency_key ON jobs (idempotency_key) WHERE idempotency_key <> '';
