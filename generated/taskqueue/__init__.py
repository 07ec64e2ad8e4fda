"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:5dc1bc31b081eb9a). Do not edit; run `nox -s generate`.
"""
