"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:d3a7a2ea018a63dc). Do not edit; run `nox -s generate`.
"""
