"""Runs the nodes of a deployment as local processes: `python -m runtime.launch`, or `launched` in a test."""

from runtime.launch.deployment import Launched, launched
from runtime.launch.errors import Died, LaunchError, NodeDied, NotHealthy, PortsTaken, WrongSettings
from runtime.launch.process import NodeProcess

__all__ = [
    "Died",
    "LaunchError",
    "Launched",
    "NodeDied",
    "NodeProcess",
    "NotHealthy",
    "PortsTaken",
    "WrongSettings",
    "launched",
]
