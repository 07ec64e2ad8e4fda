"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:e358a3f4be28322e). Do not edit; run `nox -s generate`.
"""
