-- Leads to the schema sha256:5e08ad6d467ab1db. A migration is never edited once it was accepted.

-- One piece of work, from its acceptance to its result. (spec/taskqueue/lifecycle.yaml: entities.job)
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'QUEUED',
    job_type TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL DEFAULT 0,
    started_at_ms INTEGER NOT NULL DEFAULT 0,
    finished_at_ms INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    client_request_id TEXT NOT NULL,
    spec BLOB NOT NULL,
    failure_reason TEXT NOT NULL DEFAULT '',
    cancel_reason TEXT NOT NULL DEFAULT '',
    UNIQUE (job_id),
    CHECK (status IN ('QUEUED', 'RUNNING', 'DONE', 'FAILED', 'CANCELED'))
) STRICT;

-- How many there are in each state, so that nobody has to count them.
CREATE TABLE jobs_in_state (
    status TEXT PRIMARY KEY,
    entities INTEGER NOT NULL CHECK (entities >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO jobs_in_state (status, entities)
VALUES ('QUEUED', 0), ('RUNNING', 0), ('DONE', 0), ('FAILED', 0), ('CANCELED', 0);

-- Every state change, oldest first.
CREATE TABLE job_history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX job_history_of ON job_history (job_id, number);

-- Those that have ended, in that order, and when each is forgotten.
CREATE TABLE jobs_ended (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    entity TEXT NOT NULL UNIQUE,
    until INTEGER
) STRICT;

CREATE INDEX jobs_ended_until ON jobs_ended (until) WHERE until IS NOT NULL;

-- An entity begins in one state.
CREATE TRIGGER jobs_1_create BEFORE INSERT ON jobs
WHEN NEW.status <> 'QUEUED'
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: a job begins as QUEUED');
END;

-- Which edges there are.
CREATE TRIGGER jobs_2_move BEFORE UPDATE OF status ON jobs
WHEN OLD.status <> NEW.status AND NOT CASE OLD.status
    WHEN 'QUEUED' THEN NEW.status IN ('RUNNING', 'CANCELED')
    WHEN 'RUNNING' THEN NEW.status IN ('DONE', 'FAILED', 'CANCELED')
    ELSE FALSE
END
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the lifecycle of a job has no such edge');
END;

-- What never changes, and what never falls.
CREATE TRIGGER jobs_3_keep BEFORE UPDATE ON jobs
WHEN NEW.job_id <> OLD.job_id
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: the key of a job never changes, and its counts never fall');
END;

-- What may be deleted.
CREATE TRIGGER jobs_4_delete BEFORE DELETE ON jobs
WHEN OLD.status NOT IN ('QUEUED', 'DONE', 'FAILED', 'CANCELED')
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

-- The listing.
CREATE INDEX jobs_listed ON jobs (created_at_ms, number);

-- The listing of some states.
CREATE INDEX jobs_listed_by_state ON jobs (status, created_at_ms, number);

-- The memory of a submit, so that its repetition finds the job that there is. (spec/taskqueue/lifecycle.yaml: entities.submit_key)
CREATE TABLE submit_keys (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client_request_id TEXT NOT NULL,
    presence TEXT NOT NULL DEFAULT 'PRESENT',
    job_id TEXT NOT NULL,
    remembered_at_ms INTEGER NOT NULL,
    UNIQUE (client_request_id),
    CHECK (presence IN ('PRESENT'))
) STRICT;

-- How many there are in each state, so that nobody has to count them.
CREATE TABLE submit_keys_in_state (
    presence TEXT PRIMARY KEY,
    entities INTEGER NOT NULL CHECK (entities >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO submit_keys_in_state (presence, entities)
VALUES ('PRESENT', 0);

-- Every state change, oldest first.
CREATE TABLE submit_key_history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client_request_id TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX submit_key_history_of ON submit_key_history (client_request_id, number);

-- An entity begins in one state.
CREATE TRIGGER submit_keys_1_create BEFORE INSERT ON submit_keys
WHEN NEW.presence <> 'PRESENT'
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: a submit_key begins as PRESENCE_PRESENT');
END;

-- Which edges there are.
CREATE TRIGGER submit_keys_2_move BEFORE UPDATE OF presence ON submit_keys
WHEN OLD.presence <> NEW.presence
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the lifecycle of a submit_key has no such edge');
END;

-- What never changes, and what never falls.
CREATE TRIGGER submit_keys_3_keep BEFORE UPDATE ON submit_keys
WHEN NEW.client_request_id <> OLD.client_request_id
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: the key of a submit_key never changes, and its counts never fall');
END;

-- What may be deleted.
CREATE TRIGGER submit_keys_4_delete BEFORE DELETE ON submit_keys
WHEN OLD.presence NOT IN ('PRESENT')
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: this submit_key is never deleted');
END;

CREATE TRIGGER submit_keys_5_count_new AFTER INSERT ON submit_keys
BEGIN
    UPDATE submit_keys_in_state SET entities = entities + 1 WHERE presence = NEW.presence;
END;

CREATE TRIGGER submit_keys_6_count_moved AFTER UPDATE OF presence ON submit_keys
WHEN OLD.presence <> NEW.presence
BEGIN
    UPDATE submit_keys_in_state SET entities = entities - 1 WHERE presence = OLD.presence;
    UPDATE submit_keys_in_state SET entities = entities + 1 WHERE presence = NEW.presence;
END;

CREATE TRIGGER submit_keys_7_count_gone AFTER DELETE ON submit_keys
BEGIN
    UPDATE submit_keys_in_state SET entities = entities - 1 WHERE presence = OLD.presence;
END;

-- The listing.
CREATE INDEX submit_keys_listed ON submit_keys (remembered_at_ms, number);

-- The listing of some states.
CREATE INDEX submit_keys_listed_by_state ON submit_keys (presence, remembered_at_ms, number);

-- The place of a waiting job in the queue. (spec/taskqueue/lifecycle.yaml: entities.entry)
CREATE TABLE entrys (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    presence TEXT NOT NULL DEFAULT 'PRESENT',
    enqueued_at_ms INTEGER NOT NULL,
    UNIQUE (job_id),
    CHECK (presence IN ('PRESENT'))
) STRICT;

-- How many there are in each state, so that nobody has to count them.
CREATE TABLE entrys_in_state (
    presence TEXT PRIMARY KEY,
    entities INTEGER NOT NULL CHECK (entities >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO entrys_in_state (presence, entities)
VALUES ('PRESENT', 0);

-- Every state change, oldest first.
CREATE TABLE entry_history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX entry_history_of ON entry_history (job_id, number);

-- An entity begins in one state.
CREATE TRIGGER entrys_1_create BEFORE INSERT ON entrys
WHEN NEW.presence <> 'PRESENT'
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: a entry begins as PRESENCE_PRESENT');
END;

-- Which edges there are.
CREATE TRIGGER entrys_2_move BEFORE UPDATE OF presence ON entrys
WHEN OLD.presence <> NEW.presence
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the lifecycle of a entry has no such edge');
END;

-- What never changes, and what never falls.
CREATE TRIGGER entrys_3_keep BEFORE UPDATE ON entrys
WHEN NEW.job_id <> OLD.job_id
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: the key of a entry never changes, and its counts never fall');
END;

-- What may be deleted.
CREATE TRIGGER entrys_4_delete BEFORE DELETE ON entrys
WHEN OLD.presence NOT IN ('PRESENT')
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: this entry is never deleted');
END;

CREATE TRIGGER entrys_5_count_new AFTER INSERT ON entrys
BEGIN
    UPDATE entrys_in_state SET entities = entities + 1 WHERE presence = NEW.presence;
END;

CREATE TRIGGER entrys_6_count_moved AFTER UPDATE OF presence ON entrys
WHEN OLD.presence <> NEW.presence
BEGIN
    UPDATE entrys_in_state SET entities = entities - 1 WHERE presence = OLD.presence;
    UPDATE entrys_in_state SET entities = entities + 1 WHERE presence = NEW.presence;
END;

CREATE TRIGGER entrys_7_count_gone AFTER DELETE ON entrys
BEGIN
    UPDATE entrys_in_state SET entities = entities - 1 WHERE presence = OLD.presence;
END;

-- The listing.
CREATE INDEX entrys_listed ON entrys (enqueued_at_ms, number);

-- The listing of some states.
CREATE INDEX entrys_listed_by_state ON entrys (presence, enqueued_at_ms, number);

-- The result of a terminal job. (spec/taskqueue/lifecycle.yaml: entities.envelope)
CREATE TABLE envelopes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    presence TEXT NOT NULL DEFAULT 'PRESENT',
    terminal_status INTEGER NOT NULL,
    runtime_ms INTEGER NOT NULL,
    output_summary TEXT NOT NULL,
    output_bytes BLOB NOT NULL,
    checksum TEXT NOT NULL,
    stored_at_ms INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    UNIQUE (job_id),
    CHECK (presence IN ('PRESENT')),
    CHECK (runtime_ms >= 0)
) STRICT;

-- How many there are in each state, so that nobody has to count them.
CREATE TABLE envelopes_in_state (
    presence TEXT PRIMARY KEY,
    entities INTEGER NOT NULL CHECK (entities >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO envelopes_in_state (presence, entities)
VALUES ('PRESENT', 0);

-- Every state change, oldest first.
CREATE TABLE envelope_history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX envelope_history_of ON envelope_history (job_id, number);

-- An entity begins in one state.
CREATE TRIGGER envelopes_1_create BEFORE INSERT ON envelopes
WHEN NEW.presence <> 'PRESENT'
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: a envelope begins as PRESENCE_PRESENT');
END;

-- Which edges there are.
CREATE TRIGGER envelopes_2_move BEFORE UPDATE OF presence ON envelopes
WHEN OLD.presence <> NEW.presence
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the lifecycle of a envelope has no such edge');
END;

-- What never changes, and what never falls.
CREATE TRIGGER envelopes_3_keep BEFORE UPDATE ON envelopes
WHEN NEW.job_id <> OLD.job_id
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: the key of a envelope never changes, and its counts never fall');
END;

-- What may be deleted.
CREATE TRIGGER envelopes_4_delete BEFORE DELETE ON envelopes
WHEN OLD.presence NOT IN ('PRESENT')
BEGIN
    SELECT RAISE(ABORT, 'ILLEGAL_CHANGE: this envelope is never deleted');
END;

CREATE TRIGGER envelopes_5_count_new AFTER INSERT ON envelopes
BEGIN
    UPDATE envelopes_in_state SET entities = entities + 1 WHERE presence = NEW.presence;
END;

CREATE TRIGGER envelopes_6_count_moved AFTER UPDATE OF presence ON envelopes
WHEN OLD.presence <> NEW.presence
BEGIN
    UPDATE envelopes_in_state SET entities = entities - 1 WHERE presence = OLD.presence;
    UPDATE envelopes_in_state SET entities = entities + 1 WHERE presence = NEW.presence;
END;

CREATE TRIGGER envelopes_7_count_gone AFTER DELETE ON envelopes
BEGIN
    UPDATE envelopes_in_state SET entities = entities - 1 WHERE presence = OLD.presence;
END;

-- The listing.
CREATE INDEX envelopes_listed ON envelopes (stored_at_ms, number);

-- The listing of some states.
CREATE INDEX envelopes_listed_by_state ON envelopes (presence, stored_at_ms, number);
