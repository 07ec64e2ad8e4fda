"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:0d527ac1060314c9). Do not edit; run `nox -s generate`.
"""
