-- No job is left, finished or not. Triggers stay off, which refuse just that.
SET session_replication_role = replica;
TRUNCATE jobs, job_transitions RESTART IDENTITY;
RESET session_replication_role;
