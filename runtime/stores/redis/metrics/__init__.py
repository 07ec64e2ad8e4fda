"""Metrics of the store in Redis."""
