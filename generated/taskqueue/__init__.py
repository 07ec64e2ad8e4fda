"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:236df950de133a0d). Do not edit; run `nox -s generate`.
"""
