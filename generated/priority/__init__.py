"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:1e80680fb02e85d2). Do not edit; run `nox -s generate`.
"""
