"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:461d063c7f6f0b75). Do not edit; run `nox -s generate`.
"""
