"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:aa5bd00f5b951b0d). Do not edit; run `nox -s generate`.
"""
