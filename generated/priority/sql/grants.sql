-- What the role of the service may do where another one owns the tables of priority; {service} is its name.
-- Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
--
-- It adds and moves entities and reads all there is. What never changes it cannot write, the history is written
-- for it by triggers that run as the owner, and deleting goes through functions.

GRANT SELECT ON charter_migrations TO {service};

REVOKE ALL ON task_changes, ended_tasks FROM {service};
GRANT SELECT, INSERT ON task_changes, ended_tasks TO {service};
GRANT UPDATE ON ended_tasks TO {service};
GRANT EXECUTE ON FUNCTION ended_tasks_forget(double precision, integer) TO {service};
