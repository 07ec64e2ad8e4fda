"""The cost of the engine and of both designs beside hand-written gRPC services."""
