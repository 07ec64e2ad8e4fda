"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:f1f98035f724ca12). Do not edit; run `nox -s generate`.
"""
