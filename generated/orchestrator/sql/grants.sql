-- What the role of the service may do where another one owns the tables of orchestrator; {service} is its name.
-- Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
--
-- It adds and moves entities and reads all there is. What never changes it cannot write, the history is written
-- for it by triggers that run as the owner, and deleting goes through functions.

GRANT SELECT ON charter_migrations TO {service};

REVOKE ALL ON jobs, job_transitions FROM {service};
GRANT SELECT ON jobs, job_transitions TO {service};
GRANT INSERT (job_id, job_type, payload, idempotency_key, state) ON jobs TO {service};
GRANT UPDATE (state, retry_count, attempt, lease_owner, lease_expiry, next_attempt_at, updated_at, result, last_error) ON jobs TO {service};
GRANT EXECUTE ON FUNCTION jobs_remove, jobs_purge TO {service};
