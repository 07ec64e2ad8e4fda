"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:984ba5a47c9b181b). Do not edit; run `nox -s generate`.
"""
