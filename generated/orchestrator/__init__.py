"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:afff08b015cf7050). Do not edit; run `nox -s generate`.
"""
