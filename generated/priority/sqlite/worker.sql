-- Every statement that the engine runs about a worker of priority.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. What an edge means is no part of them: the engine reads records, works out
-- what becomes of them, and writes them, all in one transaction of the one process that owns the file.
-- Where a statement says {changes} or {filters}, the engine puts the columns that it is asked to write or to
-- compare. Indexes are named where the planner, which knows nothing of how many there are in each state, would
-- choose another.

-- get
SELECT worker_id, status, capacity, capabilities, version, reported_load, registered_at, last_heartbeat, updated_at, changes FROM workers WHERE worker_id = :key;

-- insert
INSERT INTO workers (worker_id, status, capacity, capabilities, version, reported_load, registered_at, last_heartbeat, updated_at, changes)
VALUES (:record_worker_id, :record_status, :record_capacity, :record_capabilities, :record_version, :record_reported_load, :record_registered_at, :record_last_heartbeat, :record_updated_at, :record_changes);

-- write
UPDATE workers SET {changes} WHERE worker_id = :key;

-- delete
DELETE FROM workers WHERE worker_id = :key;

-- due_lose
-- Which of them are due, the longest overdue first.
SELECT worker_id, status, capacity, capabilities, version, reported_load, registered_at, last_heartbeat, updated_at, changes FROM workers INDEXED BY workers_lose
WHERE status = 'active' AND last_heartbeat < :before
ORDER BY last_heartbeat, worker_id LIMIT :most;

-- due_lose_draining
-- Which of them are due, the longest overdue first.
SELECT worker_id, status, capacity, capabilities, version, reported_load, registered_at, last_heartbeat, updated_at, changes FROM workers INDEXED BY workers_lose_draining
WHERE status = 'draining' AND last_heartbeat < :before
ORDER BY last_heartbeat, worker_id LIMIT :most;

-- find_newest
SELECT worker_id, status, capacity, capabilities, version, reported_load, registered_at, last_heartbeat, updated_at, changes FROM workers WHERE {filters} ORDER BY updated_at DESC, worker_id LIMIT :size OFFSET :offset;

-- find_oldest
SELECT worker_id, status, capacity, capabilities, version, reported_load, registered_at, last_heartbeat, updated_at, changes FROM workers WHERE {filters} ORDER BY updated_at, worker_id LIMIT :size OFFSET :offset;

-- count
SELECT status, entities FROM workers_in_state;

-- oldest
SELECT min(updated_at) FROM workers WHERE status = :state;

-- deletable
SELECT worker_id, status, capacity, capabilities, version, reported_load, registered_at, last_heartbeat, updated_at, changes FROM workers WHERE status IN ('active', 'draining');

-- remember
INSERT INTO worker_history (worker_id, from_state, to_state, actor, fence, at)
VALUES (:key, :source, :target, :actor, :fence, :now);

-- history
SELECT from_state AS source, to_state AS target, actor AS actor, at AS at, fence AS fence, NULL AS edge, '', '', ''
FROM worker_history WHERE worker_id = :key ORDER BY number;

-- forget_history
DELETE FROM worker_history WHERE worker_id = :key;

-- end
INSERT INTO workers_ended (entity, until) VALUES (:key, :until)
ON CONFLICT (entity) DO UPDATE SET until = excluded.until;

-- long_ended
SELECT entity FROM workers_ended WHERE until <= :now ORDER BY until LIMIT :most;

-- first_ended
SELECT entity FROM workers_ended ORDER BY number LIMIT 1;

-- ended
SELECT count(*) FROM workers_ended;

-- forget_ended
DELETE FROM workers_ended WHERE entity = :key;
