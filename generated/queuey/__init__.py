"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:aab82119b9d8772e). Do not edit; run `nox -s generate`.
"""
