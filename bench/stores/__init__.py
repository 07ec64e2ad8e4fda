"""Benchmark of the storage engines: what a guard, a line of history and an index cost on each."""
