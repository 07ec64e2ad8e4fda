"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:9061776454a5b353). Do not edit; run `nox -s generate`.
"""
