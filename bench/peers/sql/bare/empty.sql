-- No job is left, finished or not.
TRUNCATE bare RESTART IDENTITY;
