"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:e8f095cf7735dd5e). Do not edit; run `nox -s generate`.
"""
