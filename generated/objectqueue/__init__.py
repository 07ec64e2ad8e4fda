"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:0a73ca82f85d6127). Do not edit; run `nox -s generate`.
"""
