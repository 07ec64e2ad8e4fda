"""What a result has to say of the machine it was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import socket
from typing import Any

PACKAGES = ("grpcio", "protobuf", "uvloop", "prometheus-client")


def describe() -> dict[str, Any]:
    """Cores, load before the run, and the versions that matter."""
    return {
        "cores": os.cpu_count(),
        "load_before": [round(each, 2) for each in os.getloadavg()],
        "python": platform.python_version(),
        "system": platform.system(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
