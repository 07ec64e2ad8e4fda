"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:ac115224a0edb2a3). Do not edit; run `nox -s generate`.
"""
