"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:92f16215742045f7). Do not edit; run `nox -s generate`.
"""
