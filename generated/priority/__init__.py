"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
"""
