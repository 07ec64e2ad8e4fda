"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:73c035dffab953e6). Do not edit; run `nox -s generate`.
"""
