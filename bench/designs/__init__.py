"""Benchmark of the designs of a system: the same load in turns, compared only where that is fair."""
