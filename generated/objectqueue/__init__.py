"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:bcf217fe09fccb39). Do not edit; run `nox -s generate`.
"""
