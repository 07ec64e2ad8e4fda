-- Whether a job is not finished yet; those that are have left the table.
SELECT EXISTS (SELECT FROM pgqueuer)
