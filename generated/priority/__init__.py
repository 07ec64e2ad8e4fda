"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:6418978cf4e9c4f8). Do not edit; run `nox -s generate`.
"""
