-- Finished jobs.
INSERT INTO bare (state, payload) SELECT 2, '{"n": 1}' FROM generate_series(1, :jobs);
VACUUM (ANALYZE) bare;
