"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:2ccd8c42651808d5). Do not edit; run `nox -s generate`.
"""
