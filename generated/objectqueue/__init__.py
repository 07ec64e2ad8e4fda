"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:527cb8e9383ebdf4). Do not edit; run `nox -s generate`.
"""
