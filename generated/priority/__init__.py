"""Priority task queue: everything that is generated from spec/priority.

Generated from spec/priority (sha256:5bc095b3d325514a). Do not edit; run `nox -s generate`.
"""
