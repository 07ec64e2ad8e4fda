"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:ff9b3d2e814709c3). Do not edit; run `nox -s generate`.
"""
