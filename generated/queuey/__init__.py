"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:74a703d6431b0dfb). Do not edit; run `nox -s generate`.
"""
