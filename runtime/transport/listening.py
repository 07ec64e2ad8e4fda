"""The socket that a server of any kind listens on."""

from __future__ import annotations

import socket


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address; raises OSError, in words for whoever runs the node, when it cannot be had."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise OSError(f"cannot listen on {host}:{port}: the port is taken or not allowed") from error
    return listener
