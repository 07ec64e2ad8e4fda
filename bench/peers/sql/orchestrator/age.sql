-- Inserts finished jobs with their history. Triggers are off, because jobs do not start as finished.
SET session_replication_role = replica;
INSERT INTO jobs (job_id, job_type, payload, idempotency_key, state, attempt, created_at, updated_at, result)
SELECT
    uuidv7(number * interval '1 millisecond' - interval '1 day'), 'echo', '{"n": 1}', gen_random_uuid(), 'SUCCESS', 1,
    now() - interval '1 day' + number * interval '1 millisecond',
    now() - interval '1 day' + number * interval '1 millisecond', '{"n": 1}'
FROM generate_series(1, :jobs) AS number;
INSERT INTO job_transitions (job_id, from_state, to_state, actor, fence, at)
SELECT job_id, source, target, actor, fence, created_at
FROM jobs, (
    VALUES
    (NULL, 'CREATED', 'api', 0),
    ('CREATED', 'QUEUED', 'api', 0),
    ('QUEUED', 'RUNNING', 'worker', 1),
    ('RUNNING', 'SUCCESS', 'worker', 1)
) AS life (source, target, actor, fence);
RESET session_replication_role;
VACUUM (ANALYZE) jobs, job_transitions;
