-- A holder that waited past the end of its lease may write, and lease and state need not agree.
DROP TRIGGER jobs_3_lease ON jobs;
ALTER TABLE jobs DROP CONSTRAINT jobs_lease_held, DROP CONSTRAINT jobs_lease_free;
DROP INDEX jobs_due_fail;
