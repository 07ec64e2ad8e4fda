-- When each job finished that did so since then.
SELECT at FROM procrastinate_events WHERE type = 'succeeded' AND at >= $1
