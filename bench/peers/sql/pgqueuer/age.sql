-- Finished jobs, which are rows of the log alone; they have been counted, as it does every 30 seconds.
INSERT INTO pgqueuer_log (created, job_id, status, priority, entrypoint, aggregated)
SELECT now() - interval '1 day', id, status::pgqueuer_status, 0, 'noop', true
FROM generate_series(1, :jobs) AS id, unnest(ARRAY['queued', 'picked', 'successful']) AS status;
VACUUM (ANALYZE) pgqueuer_log;
