"""Benchmarks: each is a ratio against a baseline of the same run, with the command that reproduces it."""
