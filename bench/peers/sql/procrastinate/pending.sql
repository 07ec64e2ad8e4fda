-- Whether a job is not finished yet, found by an index that has only such jobs.
SELECT EXISTS (
    SELECT FROM procrastinate_jobs
    WHERE status = ANY (ARRAY['todo', 'doing']::procrastinate_job_status[])
    ORDER BY id, lock LIMIT 1
)
