"""Benchmark of the queue for WASI jobs against a hand-written queue."""
