"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:8abba291741fe4d4). Do not edit; run `nox -s generate`.
"""
