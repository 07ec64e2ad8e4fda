"""Calls over gRPC: served methods and typed channels, and the carriers that bring their bytes across."""
