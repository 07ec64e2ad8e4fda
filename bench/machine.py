"""The machine of a measurement, as results record it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sysconfig
from typing import Any

from runtime.launch.embedded.ports import allocate_ports

PACKAGES = ("grpcio", "protobuf", "uvloop", "prometheus-client")
OPTIMIZATIONS = ("--enable-optimizations", "--with-lto")
"""Build options of a Python that runs the same code in less time."""


def describe_host() -> dict[str, Any]:
    """Describe the machine: cores, load before the run, and the versions that matter."""
    return {
        "cores": os.cpu_count(),
        "load_before": [round(each, 2) for each in os.getloadavg()],
        "python": platform.python_version(),
        "python_built": [
            each for each in OPTIMIZATIONS if each in (sysconfig.get_config_var("CONFIG_ARGS") or "")
        ],
        "system": platform.system(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def allocate_port() -> int:
    """Allocate a free port: nothing listens on it, and no outgoing connection gets it meanwhile."""
    (port,) = allocate_ports(1)
    return port
