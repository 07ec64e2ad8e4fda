"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:8efb61d345cb3640). Do not edit; run `nox -s generate`.
"""
