-- What the role of the service may do where another one owns the tables of queuey; {service} is its name.
-- Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
--
-- It adds and moves entities and reads all there is. What no edge writes is written only where app.update says so, the history is written
-- for it by triggers that run as the owner, and deleting goes through functions.

GRANT SELECT ON charter_migrations TO {service};

REVOKE ALL ON jobs, job_history FROM {service};
GRANT SELECT ON jobs, job_history TO {service};
GRANT INSERT (job_id, binary_addr, input_addr, created_at, updated_at, completed_at, status, run_attempts, runner_id, output_addr, idempotency_key, stderr_addr, exit_code, reason, releases) ON jobs TO {service};
GRANT UPDATE (updated_at, completed_at, status, run_attempts, runner_id, output_addr, stderr_addr, exit_code, reason, releases, binary_addr, input_addr, created_at, idempotency_key) ON jobs TO {service};
