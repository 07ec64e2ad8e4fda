"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:e7bc1a43195de3a4). Do not edit; run `nox -s generate`.
"""
