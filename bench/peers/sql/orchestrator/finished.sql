-- The times of the jobs that finished since then, by their own stamps, which exist without a history, too.
SELECT updated_at FROM jobs WHERE state = 'SUCCESS' AND updated_at >= $1 AND created_at >= $1 - interval '1 hour'
