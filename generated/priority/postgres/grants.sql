-- What the role of the service may do where another one owns the tables of priority; {service} is its name.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- It adds and moves entities and reads all there is. What no edge writes is written only where app.update says so, the history is written
-- for it by triggers that run as the owner, and deleting goes through functions.

GRANT SELECT ON charter_migrations TO {service};

REVOKE ALL ON tasks, task_history FROM {service};
GRANT SELECT ON tasks, task_history TO {service};
GRANT INSERT (task_id, task_type, priority, effective_priority, parameters, required_capabilities, status, retry_count, max_retries, timeout_seconds, base_timeout_seconds, created_at, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, idempotency_key, digest, trace_id, progress, changes) ON tasks TO {service};
GRANT UPDATE (effective_priority, status, retry_count, timeout_seconds, queued_at, updated_at, started_at, completed_at, available_at, deadline_at, assigned_worker_id, attempt, result, error, retriable, dead_reason, progress, task_type, priority, parameters, required_capabilities, max_retries, base_timeout_seconds, created_at, idempotency_key, digest, trace_id, changes) ON tasks TO {service};
GRANT EXECUTE ON FUNCTION tasks_remove, tasks_purge TO {service};
GRANT EXECUTE ON FUNCTION tasks_forget_ended TO {service};
GRANT SELECT, INSERT, UPDATE ON tasks_values TO {service};
GRANT SELECT, INSERT, DELETE ON tasks_paused TO {service};

REVOKE ALL ON workers, worker_history FROM {service};
GRANT SELECT ON workers, worker_history TO {service};
GRANT INSERT (worker_id, status, capacity, capabilities, version, reported_load, registered_at, last_heartbeat, updated_at, changes) ON workers TO {service};
GRANT UPDATE (status, reported_load, last_heartbeat, updated_at, capacity, capabilities, version, registered_at, changes) ON workers TO {service};
GRANT EXECUTE ON FUNCTION workers_remove, workers_purge TO {service};
GRANT EXECUTE ON FUNCTION workers_forget_ended TO {service};
