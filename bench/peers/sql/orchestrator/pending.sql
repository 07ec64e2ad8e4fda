-- Whether a job is not finished yet, each kind found by an index that has only such jobs.
SELECT EXISTS (SELECT FROM jobs WHERE state = 'QUEUED' ORDER BY created_at LIMIT 1)
    OR EXISTS (SELECT FROM jobs WHERE state = 'RUNNING' ORDER BY lease_expiry LIMIT 1)
    OR EXISTS (SELECT FROM jobs WHERE state = 'CREATED' ORDER BY created_at LIMIT 1)
