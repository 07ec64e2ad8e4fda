"""Comparison of the priority queue with other queues on Redis, on one server and in one run."""
