-- Deletes the jobs that are not finished, and their dead rows.
SET session_replication_role = replica;
DELETE FROM job_transitions USING jobs
WHERE job_transitions.job_id = jobs.job_id AND jobs.state IN ('CREATED', 'QUEUED', 'RUNNING', 'RETRY');
DELETE FROM jobs WHERE state IN ('CREATED', 'QUEUED', 'RUNNING', 'RETRY');
RESET session_replication_role;
VACUUM (ANALYZE) jobs, job_transitions;
