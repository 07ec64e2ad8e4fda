-- The times of the jobs that finished since then.
SELECT created FROM pgqueuer_log WHERE status = 'successful' AND created >= $1
