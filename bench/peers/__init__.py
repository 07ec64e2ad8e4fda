"""Comparison of the orchestrator with other queues on PostgreSQL, on one server and in one run."""
