"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""
