"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:bceb3338cf8f5cb9). Do not edit; run `nox -s generate`.
"""
