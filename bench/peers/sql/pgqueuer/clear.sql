-- Deletes the jobs that are not finished; this table has no others.
TRUNCATE pgqueuer;
