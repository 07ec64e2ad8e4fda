"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:1b967c7ffafcf8d1). Do not edit; run `nox -s generate`.
"""
