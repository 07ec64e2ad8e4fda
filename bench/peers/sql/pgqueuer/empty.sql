-- Deletes all jobs, finished or not.
TRUNCATE pgqueuer, pgqueuer_log, pgqueuer_statistics RESTART IDENTITY;
