-- Every statement that the engine runs about a submit_key of taskqueue.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. What an edge means is no part of them: the engine reads records, works out
-- what becomes of them, and writes them, all in one transaction of the one process that owns the file.
-- Where a statement says {changes} or {filters}, the engine puts the columns that it is asked to write or to
-- compare. Indexes are named where the planner, which knows nothing of how many there are in each state, would
-- choose another.

-- get
SELECT client_request_id, presence, job_id, remembered_at_ms FROM submit_keys WHERE client_request_id = :key;

-- insert
INSERT INTO submit_keys (client_request_id, presence, job_id, remembered_at_ms)
VALUES (:record_client_request_id, :record_presence, :record_job_id, :record_remembered_at_ms);

-- write
UPDATE submit_keys SET {changes} WHERE client_request_id = :key;

-- delete
DELETE FROM submit_keys WHERE client_request_id = :key;

-- find_newest
SELECT client_request_id, presence, job_id, remembered_at_ms FROM submit_keys WHERE {filters} ORDER BY remembered_at_ms DESC, client_request_id LIMIT :size OFFSET :offset;

-- find_oldest
SELECT client_request_id, presence, job_id, remembered_at_ms FROM submit_keys WHERE {filters} ORDER BY remembered_at_ms, client_request_id LIMIT :size OFFSET :offset;

-- count
SELECT presence, entities FROM submit_keys_in_state;

-- oldest
SELECT min(remembered_at_ms) FROM submit_keys WHERE presence = :state;

-- deletable
SELECT client_request_id, presence, job_id, remembered_at_ms FROM submit_keys WHERE presence IN ('PRESENT');

-- remember
INSERT INTO submit_key_history (client_request_id, from_state, to_state, actor, fence, at)
VALUES (:key, :source, :target, :actor, :fence, :now);

-- history
SELECT from_state AS source, to_state AS target, actor AS actor, at AS at, fence AS fence, NULL AS edge, '', '', ''
FROM submit_key_history WHERE client_request_id = :key ORDER BY number;

-- forget_history
DELETE FROM submit_key_history WHERE client_request_id = :key;
