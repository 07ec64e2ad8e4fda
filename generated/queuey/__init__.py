"""Queue for WASI jobs: everything that is generated from spec/queuey.

Generated from spec/queuey (sha256:61ba2f202c7bec96). Do not edit; run `nox -s generate`.
"""
