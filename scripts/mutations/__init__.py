"""Mutations of the meaning of words in each engine, and a run that shows which of them the suites find."""
