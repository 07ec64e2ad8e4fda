-- Leads to the schema sha256:361b2154fc13df69. A migration is never edited once it was accepted.

ALTER TABLE jobs ADD COLUMN releases INTEGER NOT NULL DEFAULT 0 CHECK (releases >= 0);

ALTER TABLE job_changes ADD COLUMN edge TEXT;

DROP TRIGGER jobs_1_create;
DROP TRIGGER jobs_2_move;
DROP TRIGGER jobs_3_keep;
DROP TRIGGER jobs_4_delete;
DROP TRIGGER jobs_5_count_new;
DROP TRIGGER jobs_6_count_moved;
DROP TRIGGER jobs_7_count_gone;

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
