"""The HTTP side of a node: the same methods as over gRPC, with JSON in place of protobuf."""
