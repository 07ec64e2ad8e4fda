"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:45e2696b7da4bb73). Do not edit; run `nox -s generate`.
"""
