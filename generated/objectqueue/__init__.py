"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:b8993dd62b528384). Do not edit; run `nox -s generate`.
"""
