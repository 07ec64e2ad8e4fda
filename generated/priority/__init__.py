"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:b5126099faf90856). Do not edit; run `nox -s generate`.
"""
