"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:5f438c6ce10fad02). Do not edit; run `nox -s generate`.
"""
