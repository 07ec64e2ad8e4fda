"""Differences of lifecycle.yaml: transitions, states, and how entities are kept."""
