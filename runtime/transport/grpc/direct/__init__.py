"""HTTP/2 (RFC 9113) and the gRPC protocol on asyncio, for both sides of a call.

The package knows nothing of the engine around it: methods take and return bytes.
"""
