"""Durable job orchestrator: everything that is generated from spec/orchestrator.

Generated from spec/orchestrator (sha256:159d75815b2c6e54). Do not edit; run `nox -s generate`.
"""
