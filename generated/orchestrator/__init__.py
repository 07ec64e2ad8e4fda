"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:20b79e3e0a04a5b5). Do not edit; run `nox -s generate`.
"""
