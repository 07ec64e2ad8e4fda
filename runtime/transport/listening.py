"""Bind the listening socket of a server."""

from __future__ import annotations

import socket


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind a socket to an address; raises OSError with a message for the operator."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise OSError(f"cannot listen on {host}:{port}: the port is taken or not allowed") from error
    return listener
