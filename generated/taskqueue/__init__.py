"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:cc4bca9a201707ff). Do not edit; run `nox -s generate`.
"""
