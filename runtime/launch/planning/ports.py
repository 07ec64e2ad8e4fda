"""Ports for the nodes of a deployment: those of the spec or free ones, held so that nobody takes them."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from runtime.launch.errors import PortsTaken
from runtime.model.system import Deployment, Node, System
from runtime.node.settings import host_in

ANY = 0
METRICS_ROLE = "metrics_port"


class Place(Struct, frozen=True):
    """One process of a deployment: a node, or one replica of it."""

    name: str
    node: Node
    index: int


def places(deployment: Deployment) -> list[Place]:
    """Every process of a deployment. Replicas are called by their node's name and index."""
    return [
        Place(f"{node.name}-{index}" if node.replicas > 1 else node.name, node, index)
        for node in deployment.nodes.values()
        if not node.on_demand
        for index in range(node.replicas)
    ]


class Ports:
    """The ports of a deployment, held from before the nodes start until all of them have ended.

    A port is held by a socket that is bound and does not listen. The system gives such a port to nobody who
    asks for a free one, and lets a node bind it all the same, because both sides ask to reuse the address. So
    no other launcher and no stray connection takes the port of a node that is starting or being restarted.
    """

    def __init__(self) -> None:
        self.api: dict[str, int] = {}
        self.http: dict[str, int] = {}
        self.metrics: dict[str, int] = {}
        self._held: list[socket.socket] = []

    def reserve(
        self, system: System, deployment: Deployment, settings: Mapping[str, str], *, auto: bool
    ) -> None:
        """Takes a port for each process that listens, and one for its metrics. Tells of all that are gone."""
        taken: list[str] = []
        for place, kind, variable, host in self._listeners(deployment):
            free = auto and variable not in settings
            wanted = ANY if free else self._wanted(system, place, variable, settings)
            try:
                kind[place.name] = self._hold(_host(system, place, host, settings), wanted)
            except OSError as error:
                taken.append(f"Port {wanted} ({variable} of {place.name}) {_why(error, wanted)}.")
        if taken:
            raise PortsTaken("\n".join((*taken, "--ports auto takes ports that are free.")))
        for place in places(deployment):
            if any(system.variables[name].role == METRICS_ROLE for name in place.node.variables):
                self.metrics[place.name] = self._hold("0.0.0.0", ANY)

    def release(self) -> None:
        """Lets go of all ports."""
        while self._held:
            self._held.pop().close()

    def _listeners(self, deployment: Deployment) -> Iterator[tuple[Place, dict[str, int], str, str]]:
        """Every port that is listened on: of which process and kind, in which variable, on which host."""
        for place in places(deployment):
            node = place.node
            if node.port_variable is not None:
                yield place, self.api, node.port_variable, node.bind_host or "0.0.0.0"
            if node.http is not None:
                yield place, self.http, node.http.port_variable, node.http.host

    def _wanted(self, system: System, place: Place, variable: str, settings: Mapping[str, str]) -> int:
        """What the settings or the spec say; replicas, and nodes that share a default, take the next ones."""
        number = int(_said(system, place, variable, settings) or ANY)
        if number == ANY:
            return ANY
        number += place.index
        while number in self.api.values() or number in self.http.values():
            number += 1
        return number

    def _hold(self, host: str, port: int) -> int:
        holder = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind((host, port))
        except (OSError, OverflowError) as error:
            holder.close()
            raise error if isinstance(error, OSError) else OSError(errno.EINVAL, "is no port") from error
        self._held.append(holder)
        number: int = holder.getsockname()[1]
        return number


def _host(system: System, place: Place, host: str, settings: Mapping[str, str]) -> str:
    """Where a process listens; `${NAME}` is what a variable says."""
    return host_in(host, {name: _said(system, place, name, settings) for name in place.node.variables})


def _said(system: System, place: Place, variable: str, settings: Mapping[str, str]) -> str | None:
    """What a variable is for a process."""
    return settings.get(variable) or place.node.defaults.get(variable) or system.variables[variable].default


def _why(error: OSError, port: int) -> str:
    if error.errno != errno.EADDRINUSE:
        return f"cannot be had: {error.strerror}"
    owners = _listeners(port)
    return f"is taken by {', '.join(owners)}" if owners else "is taken"


def _listeners(port: int) -> Sequence[str]:
    """Who listens on a port, as far as the system tells us."""
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
