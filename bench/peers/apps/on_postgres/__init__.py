"""Producers and workers of queues on PostgreSQL."""
