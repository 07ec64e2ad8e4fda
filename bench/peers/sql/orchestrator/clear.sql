-- Jobs that are not finished are gone, and so is what they leave in the pages.
SET session_replication_role = replica;
DELETE FROM job_transitions USING jobs
WHERE job_transitions.job_id = jobs.job_id AND jobs.state NOT IN ('SUCCESS', 'DEAD');
DELETE FROM jobs WHERE state NOT IN ('SUCCESS', 'DEAD');
RESET session_replication_role;
VACUUM (ANALYZE) jobs, job_transitions;
