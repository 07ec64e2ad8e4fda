"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:cb83686dd6d4a4c6). Do not edit; run `nox -s generate`.
"""
