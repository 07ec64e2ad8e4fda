"""Launcher: run the nodes of a deployment as local processes. `python -m runtime.launch` or `launched`."""

from runtime.launch.deployment import Launched, launched
from runtime.launch.errors import LaunchError, NodeDied, NotHealthy, PortsTaken, ProcessDied, WrongSettings
from runtime.launch.process import NodeProcess

__all__ = [
    "LaunchError",
    "Launched",
    "NodeDied",
    "NodeProcess",
    "NotHealthy",
    "PortsTaken",
    "ProcessDied",
    "WrongSettings",
    "launched",
]
