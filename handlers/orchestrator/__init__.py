"""The business logic of the orchestrator: accepting jobs, showing them, and running them."""
