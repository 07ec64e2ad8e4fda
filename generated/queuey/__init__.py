"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:65eead736a25b8d5). Do not edit; run `nox -s generate`.
"""
