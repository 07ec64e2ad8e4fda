"""The business logic of the orchestrator: its API, its producers and its worker."""
