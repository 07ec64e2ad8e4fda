-- What queuey keeps in a SQLite file, for a fresh one.
-- Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
--
-- The guards hold for everybody, also for what a person types in: an edge that the lifecycle does not have is
-- refused, and so is a deletion that it does not let.

-- One run of a WASI binary, from the wish to have it run to its end. (spec/queuey/lifecycle.yaml: entities.job)
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    binary_addr TEXT NOT NULL,
    input_addr TEXT,
    created_at INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL DEFAULT 0,
    completed_at INTEGER,
    status TEXT NOT NULL DEFAULT 'pending',
    run_attempts INTEGER NOT NULL DEFAULT 0,
    runner_id TEXT,
    output_addr TEXT,
    idempotency_key TEXT,
    stderr_addr TEXT,
    exit_code INTEGER,
    reason TEXT,
    releases INTEGER NOT NULL DEFAULT 0,
    UNIQUE (job_id),
    UNIQUE (idempotency_key),
    CHECK (created_at >= 0),
    CHECK (updated_at >= 0),
    CHECK (completed_at >= 0),
    CHECK (status IN ('pending', 'active', 'completed', 'failed')),
    CHECK (run_attempts >= 0),
    CHECK (releases >= 0),
    CHECK (status <> 'active' OR runner_id IS NOT NULL)
) STRICT;

-- How many there are in each state, so that nobody has to count them.
CREATE TABLE jobs_in_state (
    status TEXT PRIMARY KEY,
    entities INTEGER NOT NULL CHECK (entities >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO jobs_in_state (status, entities)
VALUES ('pending', 0), ('active', 0), ('completed', 0), ('failed', 0);

-- Every state change, oldest first.
CREATE TABLE job_changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    edge TEXT
) STRICT;

CREATE INDEX job_changes_of ON job_changes (job_id, number);

-- An entity begins in one state.
CREATE TRIGGER jobs_1_create BEFORE INSERT ON jobs
WHEN NEW.status <> 'pending'
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: a job begins as PENDING');
END;

-- Which edges there are.
CREATE TRIGGER jobs_2_move BEFORE UPDATE OF status ON jobs
WHEN OLD.status <> NEW.status AND NOT CASE OLD.status
    WHEN 'pending' THEN NEW.status IN ('active')
    WHEN 'active' THEN NEW.status IN ('pending', 'completed', 'failed')
    ELSE FALSE
END
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the lifecycle of a job has no such edge');
END;

-- What never changes, and what never falls.
CREATE TRIGGER jobs_3_keep BEFORE UPDATE ON jobs
WHEN NEW.job_id <> OLD.job_id OR NEW.run_attempts < OLD.run_attempts OR NEW.releases < OLD.releases
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: the key of a job never changes, and its counts never fall');
END;

-- What may be deleted.
CREATE TRIGGER jobs_4_delete BEFORE DELETE ON jobs
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: this job is never deleted');
END;

CREATE TRIGGER jobs_5_count_new AFTER INSERT ON jobs
BEGIN
    UPDATE jobs_in_state SET entities = entities + 1 WHERE status = NEW.status;
END;

CREATE TRIGGER jobs_6_count_moved AFTER UPDATE OF status ON jobs
WHEN OLD.status <> NEW.status
BEGIN
    UPDATE jobs_in_state SET entities = entities - 1 WHERE status = OLD.status;
    UPDATE jobs_in_state SET entities = entities + 1 WHERE status = NEW.status;
END;

CREATE TRIGGER jobs_7_count_gone AFTER DELETE ON jobs
BEGIN
    UPDATE jobs_in_state SET entities = entities - 1 WHERE status = OLD.status;
END;

-- The next one to be taken.
CREATE INDEX jobs_acquirable ON jobs (created_at, number) WHERE status = 'pending';

-- Those that are due to abandon.
CREATE INDEX jobs_abandon ON jobs (updated_at) WHERE status = 'active';

-- The listing.
CREATE INDEX jobs_listed ON jobs (created_at, number);

-- The listing of some states.
CREATE INDEX jobs_listed_by_state ON jobs (status, created_at, number);
