"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:a1698fe844377ddc). Do not edit; run `nox -s generate`.
"""
