"""Hand-written logic of the queue for WASI jobs."""
