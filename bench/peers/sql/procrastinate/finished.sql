-- The times of the jobs that finished since then.
SELECT at FROM procrastinate_events WHERE type = 'succeeded' AND at >= $1
