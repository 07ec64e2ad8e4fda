"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:70d544d39ad0d1a6). Do not edit; run `nox -s generate`.
"""
