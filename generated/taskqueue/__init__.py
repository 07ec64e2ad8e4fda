"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:e1282110c775c774). Do not edit; run `nox -s generate`.
"""
