"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:8e7e834740c81b25). Do not edit; run `nox -s generate`.
"""
