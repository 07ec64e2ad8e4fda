-- No job is left, finished or not.
TRUNCATE jobs, job_transitions RESTART IDENTITY;
