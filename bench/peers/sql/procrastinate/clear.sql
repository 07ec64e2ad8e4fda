-- Deletes the jobs that are not finished, and their dead rows.
DELETE FROM procrastinate_jobs WHERE status IN ('todo', 'doing');
VACUUM (ANALYZE) procrastinate_jobs, procrastinate_events;
