"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:f96daff75ec57f51). Do not edit; run `nox -s generate`.
"""
