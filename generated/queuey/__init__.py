"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:e6fdee8da5a98a1e). Do not edit; run `nox -s generate`.
"""
