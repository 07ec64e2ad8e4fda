"""Benchmark of the engine and of both designs against hand-written gRPC services."""
