-- When each job finished that did so since then.
SELECT created FROM pgqueuer_log WHERE status = 'successful' AND created >= $1
