"""Reserved ports of a deployment: those of the spec or free ones, reserved until all nodes have ended."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from runtime.launch.errors import PortsTaken
from runtime.model.system import Deployment, Node, System
from runtime.node.settings import resolve_host

ANY = 0
METRICS_ROLE = "metrics_port"


class ProcessSlot(Struct, frozen=True):
    """One process of a deployment: a node, or one replica of it."""

    name: str
    node: Node
    index: int


def list_slots(deployment: Deployment) -> list[ProcessSlot]:
    """List the processes of a deployment. Replicas have their node's name and index."""
    return [
        ProcessSlot(f"{node.name}-{index}" if node.replicas > 1 else node.name, node, index)
        for node in deployment.nodes.values()
        if not node.on_demand
        for index in range(node.replicas)
    ]


class ReservedPorts:
    """The ports of a deployment, reserved from before the nodes start until all of them have ended.

    A port is reserved by a socket that is bound and does not listen. The kernel does not give such a port to
    a process that binds port 0, and still lets a node bind it, because both sides set SO_REUSEADDR. So no
    other launcher and no outgoing connection gets the port of a node that is starting or being restarted.
    """

    def __init__(self) -> None:
        self.api: dict[str, int] = {}
        self.http: dict[str, int] = {}
        self.metrics: dict[str, int] = {}
        self._sockets: list[socket.socket] = []

    def reserve(
        self, system: System, deployment: Deployment, settings: Mapping[str, str], *, auto: bool
    ) -> None:
        """Reserve a port for each listener and for metrics; raises PortsTaken with all that are in use."""
        taken: list[str] = []
        for slot, kind, variable, host in self._listeners(deployment):
            free = auto and variable not in settings
            wanted = ANY if free else self._choose_port(system, slot, variable, settings)
            try:
                kind[slot.name] = self._reserve_port(_host(system, slot, host, settings), wanted)
            except OSError as error:
                taken.append(f"Port {wanted} ({variable} of {slot.name}) {_explain(error, wanted)}.")
        if taken:
            raise PortsTaken("\n".join((*taken, "--ports auto takes ports that are free.")))
        for slot in list_slots(deployment):
            if any(system.variables[name].role == METRICS_ROLE for name in slot.node.variables):
                self.metrics[slot.name] = self._reserve_port("0.0.0.0", ANY)

    def release(self) -> None:
        """Release all ports."""
        while self._sockets:
            self._sockets.pop().close()

    def _listeners(self, deployment: Deployment) -> Iterator[tuple[ProcessSlot, dict[str, int], str, str]]:
        """Iterate over all listeners: process, kind of port, its variable, and the host."""
        for slot in list_slots(deployment):
            node = slot.node
            if node.port_variable is not None:
                yield slot, self.api, node.port_variable, node.bind_host or "0.0.0.0"
            if node.http is not None:
                yield slot, self.http, node.http.port_variable, node.http.host

    def _choose_port(
        self, system: System, slot: ProcessSlot, variable: str, settings: Mapping[str, str]
    ) -> int:
        """Return the port of the settings or the spec; replicas and equal defaults get the next ones."""
        number = int(_lookup(system, slot, variable, settings) or ANY)
        if number == ANY:
            return ANY
        number += slot.index
        while number in self.api.values() or number in self.http.values():
            number += 1
        return number

    def _reserve_port(self, host: str, port: int) -> int:
        reserved = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind((host, port))
        except (OSError, OverflowError) as error:
            reserved.close()
            raise error if isinstance(error, OSError) else OSError(errno.EINVAL, "is no port") from error
        self._sockets.append(reserved)
        number: int = reserved.getsockname()[1]
        return number


def _host(system: System, slot: ProcessSlot, host: str, settings: Mapping[str, str]) -> str:
    """Resolve the host of a listener; `${NAME}` is the value of a variable."""
    return resolve_host(host, {name: _lookup(system, slot, name, settings) for name in slot.node.variables})


def _lookup(system: System, slot: ProcessSlot, variable: str, settings: Mapping[str, str]) -> str | None:
    """Look up the value of a variable for a process."""
    return settings.get(variable) or slot.node.defaults.get(variable) or system.variables[variable].default


def _explain(error: OSError, port: int) -> str:
    if error.errno != errno.EADDRINUSE:
        return f"cannot be had: {error.strerror}"
    owners = _find_listeners(port)
    return f"is taken by {', '.join(owners)}" if owners else "is taken"


def _find_listeners(port: int) -> Sequence[str]:
    """Find the processes that listen on a port, as far as the system permits."""
    try:
        import psutil
    except ImportError:  # It comes with the development tools only.
        return []
    found = []
    try:
        rows = psutil.net_connections("tcp")
    except psutil.Error:
        return []
    for row in rows:
        if row.laddr and row.laddr.port == port and row.status == psutil.CONN_LISTEN and row.pid:
            try:
                process = psutil.Process(row.pid)
                command = " ".join(process.cmdline()) or process.name()
            except psutil.Error:
                command = "a process that has gone"
            mine = " (this very process)" if row.pid == os.getpid() else ""
            found.append(f"process {row.pid}{mine}: {command[:120]}")
    return list(dict.fromkeys(found))
