-- Every statement that the engine runs about a entry of taskqueue.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- A line with its name begins each. What an edge means is no part of them: the engine reads records, works out
-- what becomes of them, and writes them, all in one transaction of the one process that owns the file.
-- Where a statement says {changes} or {filters}, the engine puts the columns that it is asked to write or to
-- compare. Indexes are named where the planner, which knows nothing of how many there are in each state, would
-- choose another.

-- get
SELECT job_id, presence, enqueued_at_ms FROM entrys WHERE job_id = :key;

-- insert
INSERT INTO entrys (job_id, presence, enqueued_at_ms)
VALUES (:record_job_id, :record_presence, :record_enqueued_at_ms);

-- write
UPDATE entrys SET {changes} WHERE job_id = :key;

-- delete
DELETE FROM entrys WHERE job_id = :key;

-- find_newest
SELECT job_id, presence, enqueued_at_ms FROM entrys WHERE {filters} ORDER BY enqueued_at_ms DESC, job_id LIMIT :size OFFSET :offset;

-- find_oldest
SELECT job_id, presence, enqueued_at_ms FROM entrys WHERE {filters} ORDER BY enqueued_at_ms, job_id LIMIT :size OFFSET :offset;

-- count
SELECT presence, entities FROM entrys_in_state;

-- oldest
SELECT min(enqueued_at_ms) FROM entrys WHERE presence = :state;

-- deletable
SELECT job_id, presence, enqueued_at_ms FROM entrys WHERE presence IN ('PRESENT');

-- remember
INSERT INTO entry_history (job_id, from_state, to_state, actor, fence, at)
VALUES (:key, :source, :target, :actor, :fence, :now);

-- history
SELECT from_state AS source, to_state AS target, actor AS actor, at AS at, fence AS fence, NULL AS edge, '', '', ''
FROM entry_history WHERE job_id = :key ORDER BY number;

-- forget_history
DELETE FROM entry_history WHERE job_id = :key;
