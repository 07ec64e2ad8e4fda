"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:13ad5cd6410b8bb6). Do not edit; run `nox -s generate`.
"""
