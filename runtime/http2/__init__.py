"""The serving side of HTTP/2, as far as gRPC needs it: frames, headers, streams and connections."""
