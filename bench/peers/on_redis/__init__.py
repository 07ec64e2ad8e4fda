"""The priority queue beside other queues that keep jobs in Redis, on one server and in one run."""
