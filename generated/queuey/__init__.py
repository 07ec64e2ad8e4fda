"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:1b3f6742c989844c). Do not edit; run `nox -s generate`.
"""
