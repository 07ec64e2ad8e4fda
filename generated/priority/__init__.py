"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:2d1f71f8549c930f). Do not edit; run `nox -s generate`.
"""
