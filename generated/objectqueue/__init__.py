"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:1bd7696669d84f85). Do not edit; run `nox -s generate`.
"""
