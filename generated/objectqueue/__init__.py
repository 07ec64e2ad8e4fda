"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:471f362c02c47169). Do not edit; run `nox -s generate`.
"""
