"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:8cc7eedffc20cdfa). Do not edit; run `nox -s generate`.
"""
