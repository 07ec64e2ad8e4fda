-- Deletes all jobs, finished or not.
TRUNCATE bare RESTART IDENTITY;
