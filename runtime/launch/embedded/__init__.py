"""Servers that come as Python packages: real ones, for a machine that has none of its own."""
