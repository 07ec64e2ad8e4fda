"""Sites of a measured design: local processes, containers, or a deployment that runs already."""

from __future__ import annotations

import json
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from rich.console import Console

from bench.designs.nodes import Meter, list_process_tree
from bench.engine.servers import use_carrier
from bench.generator.fleet import Target
from bench.generator.traffic import touch_nodes
from runtime.call.conditions import Failure
from runtime.certs import make_certificates
from runtime.client import Client, connect
from runtime.launch import Launched, launched
from runtime.model.system import Deployment, System
from runtime.node.systems import find_deployment
from runtime.transport.grpc.carrier import DEFAULT

SiteKind = Literal["processes", "containers", "running"]


@dataclass(frozen=True, slots=True)
class Launch:
    """The nodes of one launch, their addresses for clients, and their slots."""

    deployment: str
    addresses: tuple[str, ...]
    nodes: Mapping[str, str]
    slots: int | None
    """Jobs that all nodes run at a time, in sum; None where that is not visible from outside."""


@dataclass(frozen=True, slots=True)
class Site:
    """A deployment that is running, with a client and a meter."""

    launch: Launch
    target: Target
    client: Client
    meter: Meter


class SiteProvider(Protocol):
    """Starts a deployment, or connects to it, for as long as it is measured."""

    kind: SiteKind

    def open(self, deployment: str, tls: bool, /) -> AbstractAsyncContextManager[Site]:
        """Open a site of the deployment."""
        ...


class LocalProcesses:
    """Each node as a new process of this machine."""

    kind: SiteKind = "processes"

    def __init__(self, settings: Mapping[str, str], carrier: str = DEFAULT) -> None:
        """`carrier` is that of the nodes; clients have the default one."""
        self._settings = settings
        self._carrier = carrier

    @asynccontextmanager
    async def open(self, deployment: str, tls: bool, /) -> AsyncIterator[Site]:
        """Launch the deployment, and stop it at the end."""
        async with AsyncExitStack() as stack:
            with use_carrier(self._carrier):
                running = await stack.enter_async_context(
                    launched(deployment, ports="auto", tls=tls, settings=self._settings)
                )
            client = await stack.enter_async_context(running.client())
            target = Target.from_environment(running.env)
            nodes = {name: process.plan.address or "" for name, process in running.processes.items()}
            yield Site(
                Launch(running.name, target.addresses, nodes, count_slots(running)),
                target,
                client,
                Meter(
                    {name: process.plan.metrics_port for name, process in running.processes.items()},
                    {
                        name: list_process_tree(process.pid)
                        for name, process in running.processes.items()
                        if process.pid is not None
                    },
                ),
            )


def count_slots(running: Launched) -> int:
    """Count the jobs that all processes run at a time, by the variables that they really have."""
    variable = running.deployment.slots_variable
    return sum(
        int(process.plan.variables[variable])
        for process in running.processes.values()
        if variable is not None and variable in process.plan.variables
    )


class RunningDeployment:
    """A deployment that runs already, at known addresses; only clients can be measured."""

    kind: SiteKind = "running"

    def __init__(self, addresses: Sequence[str], ca_file: Path | None) -> None:
        self._addresses = tuple(addresses)
        self._ca_file = str(ca_file) if ca_file is not None else None
        if self._ca_file is not None:
            require_certificates(self._ca_file)

    @asynccontextmanager
    async def open(self, deployment: str, _tls: bool, /) -> AsyncIterator[Site]:
        """Connect; raise ValueError if a node cannot be called."""
        system, _ = find_deployment(deployment)
        target = Target(system.name, self._addresses, self._ca_file)
        async with connect(system, self._addresses, ca_file=self._ca_file) as client:
            try:
                await touch_nodes(client)
            except Failure as failure:
                raise ValueError(f"{deployment} cannot be called at --target: {failure}") from failure
            yield Site(Launch(deployment, self._addresses, {}, None), target, client, Meter({}, {}))


def require_addresses(name: str, deployment: Deployment, addresses: Sequence[str]) -> None:
    """Raise ValueError unless there is an address for each ingress node."""
    wanted = sum(deployment.nodes[node].replicas for node in deployment.ingress)
    if len(addresses) != wanted:
        raise ValueError(
            f"--target has {len(addresses)} addresses, and {name} has {wanted} nodes that clients call. "
            "Give all of them, in the order of their indexes, separated by commas."
        )


def require_certificates(ca_file: str) -> None:
    """Raise ValueError unless a file has certificates of an authority."""
    try:
        ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise ValueError(f"--ca-file {ca_file} has no certificates in PEM form.") from None


class ComposeContainers:
    """Each node in a container of the generated compose file; clients come in by the published ports."""

    kind: SiteKind = "containers"

    def __init__(self, console: Console, settings: Mapping[str, str]) -> None:
        self._console = console
        self._settings = settings

    @asynccontextmanager
    async def open(self, deployment: str, _tls: bool, /) -> AsyncIterator[Site]:
        """Build the image, start the containers, and remove them at the end."""
        # Only this provider needs the scripts for containers, which an image does not have.
        from scripts.compose_proof import make_certificates_readable
        from scripts.compose_stack import Stack

        system, table = find_deployment(deployment)
        with tempfile.TemporaryDirectory(prefix="charter-certs-") as folder:
            certificates = Path(folder)
            make_certificates(system, table.name, certificates)
            make_certificates_readable(certificates)
            stack = Stack(system, table, self._console, certificates)
            stack.server_secrets.update(self._settings)
            try:
                stack.up()
                port = _listening_port(system, table, self._settings)
                addresses = tuple(f"127.0.0.1:{port}" for port in stack.list_published_ports(port))
                require_addresses(deployment, table, addresses)
                authority = str(certificates / "ca.crt")
                containers = inspect_containers(stack.run("ps", "--quiet").split())
                async with connect(system, addresses, ca_file=authority) as client:
                    yield Site(
                        Launch(
                            deployment,
                            addresses,
                            {each.service: "" for each in containers},
                            sum(
                                int(each.variables.get(table.slots_variable or "", 0)) for each in containers
                            ),
                        ),
                        Target(system.name, addresses, authority),
                        client,
                        Meter({}, {each.service: list_process_tree(each.pid) for each in containers}),
                    )
            finally:
                stack.down()


@dataclass(frozen=True, slots=True)
class Container:
    """A running container, as Docker describes it."""

    service: str
    pid: int
    """Its first process, by its id on the machine."""
    variables: Mapping[str, str]


def inspect_containers(identifiers: Sequence[str]) -> list[Container]:
    """Inspect containers with `docker inspect`."""
    command = ["docker", "inspect", *identifiers]
    described = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [parse_container(each) for each in json.loads(described)]


def parse_container(described: Mapping[str, object]) -> Container:
    """Parse the output of `docker inspect` for one container."""
    state, config = described["State"], described["Config"]
    assert isinstance(state, dict)
    assert isinstance(config, dict)
    # A variable that compose passes on without a value is listed without an equals sign.
    variables = dict(each.split("=", 1) for each in config["Env"] if "=" in each)
    return Container(config["Labels"]["com.docker.compose.service"], int(state["Pid"]), variables)


def _listening_port(system: System, deployment: Deployment, settings: Mapping[str, str]) -> str:
    """Find the port inside the containers that clients call."""
    node = deployment.nodes[deployment.ingress[0]]
    name = node.port_variable or ""
    return settings.get(name) or node.defaults.get(name) or system.variables[name].default or ""
