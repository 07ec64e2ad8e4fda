"""Measurements: each a ratio against a baseline in the same run, with the command that reproduces it."""
