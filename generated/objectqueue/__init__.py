"""Task queue in object storage: everything that is generated from spec/objectqueue.

Generated from spec/objectqueue (sha256:a0862b42aa7f0d21). Do not edit; run `nox -s generate`.
"""
