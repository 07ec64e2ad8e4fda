"""The business logic of the queue for WASI jobs: its queue, store and runner, and its commands."""
