"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:b7ddec6b3ec845c4). Do not edit; run `nox -s generate`.
"""
