-- Leads to the schema sha256:0c0559c9e936202e. A migration is never edited once it was accepted.

DROP TRIGGER tasks_1_create;
DROP TRIGGER tasks_2_move;
DROP TRIGGER tasks_3_keep;
DROP TRIGGER tasks_4_delete;
DROP TRIGGER tasks_5_count_new;
DROP TRIGGER tasks_6_count_moved;
DROP TRIGGER tasks_7_count_gone;

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

DROP TRIGGER workers_1_create;
DROP TRIGGER workers_2_move;
DROP TRIGGER workers_3_keep;
DROP TRIGGER workers_4_delete;
DROP TRIGGER workers_5_count_new;
DROP TRIGGER workers_6_count_moved;
DROP TRIGGER workers_7_count_gone;

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
    WHEN 'draining' THEN NEW.status IN ('dead', 'active')
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

DROP INDEX workers_lose;

DROP INDEX workers_lose_draining;

-- Those that are due to lose.
CREATE INDEX workers_lose ON workers (last_heartbeat) WHERE status IN ('active', 'draining');
