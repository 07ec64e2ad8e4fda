"""Distributed task queue: everything that is generated from spec/taskqueue.

Generated from spec/taskqueue (sha256:ba755d017eff893d). Do not edit; run `nox -s generate`.
"""
