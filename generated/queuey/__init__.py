"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:a3f168a8a1c4ff9a). Do not edit; run `nox -s generate`.
"""
