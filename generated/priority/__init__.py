"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:87080dc2d6791b10). Do not edit; run `nox -s generate`.
"""
