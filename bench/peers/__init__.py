"""The orchestrator beside other queues that keep jobs in PostgreSQL, on one server and in one run."""
