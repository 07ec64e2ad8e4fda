"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:ccd1c09b8a5c5eb3). Do not edit; run `nox -s generate`.
"""
