-- Deletes the jobs that are not finished, and their dead rows.
DELETE FROM bare WHERE state < 2;
VACUUM (ANALYZE) bare;
