-- Removes fencing: an owner may write after its lease has expired, and lease and state may disagree.
DROP TRIGGER jobs_3_lease ON jobs;
ALTER TABLE jobs DROP CONSTRAINT jobs_lease_held, DROP CONSTRAINT jobs_lease_free;
DROP INDEX jobs_due_fail;
