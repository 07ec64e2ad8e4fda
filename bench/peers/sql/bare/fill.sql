-- Jobs to drain.
INSERT INTO bare (payload) SELECT '{"n": 1}' FROM generate_series(1, :jobs);
