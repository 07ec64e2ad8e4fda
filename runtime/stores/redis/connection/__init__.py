"""Connections to Redis: addresses, pipelining, and sockets without an event loop."""
