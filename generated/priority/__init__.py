"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:0634b5a63c3c16d3). Do not edit; run `nox -s generate`.
"""
