-- Deletes all jobs, finished or not.
TRUNCATE procrastinate_jobs, procrastinate_events RESTART IDENTITY CASCADE;
