-- Inserts finished jobs with their events. Triggers are off, because jobs do not start as finished.
SET session_replication_role = replica;
INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, attempts)
SELECT 'default', 'noop', '{"n": 1}', 'succeeded', 1 FROM generate_series(1, :jobs);
INSERT INTO procrastinate_events (job_id, type, at)
SELECT id, type::procrastinate_job_event_type, now() - interval '1 day'
FROM procrastinate_jobs, unnest(ARRAY['deferred', 'started', 'succeeded']) AS type;
RESET session_replication_role;
VACUUM (ANALYZE) procrastinate_jobs, procrastinate_events;
