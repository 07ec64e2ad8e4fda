"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:0e52ce32bb557201). Do not edit; run `nox -s generate`.
"""
