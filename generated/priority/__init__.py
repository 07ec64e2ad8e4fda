"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:fa026860ede8b08a). Do not edit; run `nox -s generate`.
"""
