"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:846696410b2c932e). Do not edit; run `nox -s generate`.
"""
