"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""
