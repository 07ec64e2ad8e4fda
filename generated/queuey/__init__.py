"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:aae65c91f93c4e6a). Do not edit; run `nox -s generate`.
"""
