"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:6455d015cd166d20). Do not edit; run `nox -s generate`.
"""
