"""What a result has to say of the machine it was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sysconfig
from typing import Any

from runtime.embedded.ports import allocate_ports

PACKAGES = ("grpcio", "protobuf", "uvloop", "prometheus-client")
FASTER = ("--enable-optimizations", "--with-lto")
"""How a Python is configured that is to run the same code in less time."""


def describe() -> dict[str, Any]:
    """Cores, load before the run, and the versions that matter."""
    return {
        "cores": os.cpu_count(),
        "load_before": [round(each, 2) for each in os.getloadavg()],
        "python": platform.python_version(),
        "python_built": [each for each in FASTER if each in (sysconfig.get_config_var("CONFIG_ARGS") or "")],
        "system": platform.system(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def free_port() -> int:
    """A port that nobody listens on, and that no connection is given meanwhile."""
    (port,) = allocate_ports(1)
    return port
