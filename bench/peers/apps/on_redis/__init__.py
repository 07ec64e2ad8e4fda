"""Producers and workers of queues on Redis."""
