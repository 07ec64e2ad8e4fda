"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:36b13013be841f35). Do not edit; run `nox -s generate`.
"""
