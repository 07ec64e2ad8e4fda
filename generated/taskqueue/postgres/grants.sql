-- What the role of the service may do where another one owns the tables of taskqueue; {service} is its name.
-- Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
--
-- It adds and moves entities and reads all there is. What no edge writes is written only where app.update says so, the history is written
-- for it by triggers that run as the owner, and deleting goes through functions.

GRANT SELECT ON charter_migrations TO {service};

REVOKE ALL ON jobs, job_history FROM {service};
GRANT SELECT ON jobs, job_history TO {service};
GRANT INSERT (job_id, status, job_type, created_at_ms, started_at_ms, finished_at_ms, cancel_requested, client_request_id, spec, failure_reason, cancel_reason) ON jobs TO {service};
GRANT UPDATE (status, started_at_ms, finished_at_ms, cancel_requested, failure_reason, cancel_reason, job_type, created_at_ms, client_request_id, spec) ON jobs TO {service};
GRANT EXECUTE ON FUNCTION jobs_remove, jobs_purge TO {service};
GRANT EXECUTE ON FUNCTION jobs_forget_ended TO {service};

REVOKE ALL ON submit_keys, submit_key_history FROM {service};
GRANT SELECT ON submit_keys, submit_key_history TO {service};
GRANT INSERT (client_request_id, job_id, remembered_at_ms, presence) ON submit_keys TO {service};
GRANT UPDATE (presence, job_id, remembered_at_ms) ON submit_keys TO {service};
GRANT EXECUTE ON FUNCTION submit_keys_remove, submit_keys_purge TO {service};

REVOKE ALL ON entrys, entry_history FROM {service};
GRANT SELECT ON entrys, entry_history TO {service};
GRANT INSERT (job_id, enqueued_at_ms, presence) ON entrys TO {service};
GRANT UPDATE (presence, enqueued_at_ms) ON entrys TO {service};
GRANT EXECUTE ON FUNCTION entrys_remove, entrys_purge TO {service};

REVOKE ALL ON envelopes, envelope_history FROM {service};
GRANT SELECT ON envelopes, envelope_history TO {service};
GRANT INSERT (job_id, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes, presence) ON envelopes TO {service};
GRANT UPDATE (presence, terminal_status, runtime_ms, output_summary, output_bytes, checksum, stored_at_ms, stored_bytes) ON envelopes TO {service};
GRANT EXECUTE ON FUNCTION envelopes_remove, envelopes_purge TO {service};
