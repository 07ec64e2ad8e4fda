"""Proof of a generated compose file in real containers.

`python -m scripts.compose_proof <system>.<deployment>` builds the image, waits until every healthcheck
passes, runs the demo through the published port, shows that a proven caller is denied what the matrix does
not permit, kills a node and waits for its restart, and removes all containers. With `--sentinel` it does so
with the variant that has several Redis, kills the master, and runs the demo with the next one.

A deployment without an ingress has no node to call: there the demo uses the published port of the store, a
node with a wrong password has to be denied, and neither the kill of a replica during its work nor that of the
store may lose anything. All of it needs a Docker engine with compose v2, which `docker` finds by its usual
variables.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from runtime.certs import make_certificates
from runtime.client import connect
from runtime.model.system import Method, Node
from runtime.node.systems import load_system, outside_principals
from scripts.compose_stack import COMPOSE, Stack
from scripts.store_proof import StoreProof

IMAGE_USER = 10001
SENTINEL = "--sentinel"

DENIAL = """
import asyncio, sys
import grpc, grpc.aio
certificate, key, authority, address, name, path = sys.argv[1:]
read = lambda file: open(file, "rb").read()
credentials = grpc.ssl_channel_credentials(read(authority), read(key), read(certificate))
async def call():
    options = [("grpc.ssl_target_name_override", name)]
    async with grpc.aio.secure_channel(address, credentials, options) as channel:
        try:
            await channel.unary_unary(path)(b"", timeout=5)
        except grpc.aio.AioRpcError as error:
            print(error.code().name, error.details())
        else:
            print("OK")
asyncio.run(call())
"""
"""A call with the node's own certificate; runs inside a container, which lacks this project's scripts."""


class IngressProof:
    """Proof of containers that clients call."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._system = stack.system
        self._deployment = stack.deployment

    def prove(self, *, with_failover: bool) -> None:
        """Run all checks, with running containers."""
        self.run_demo()
        self.check_http()
        if not self._deployment.in_process:
            self.check_denial()
        self._stack.kill(self._stack.list_services(self._deployment.ingress[0])[0])
        self.run_demo()
        if with_failover:
            self.fail_over()
            self.run_demo()

    def run_demo(self) -> None:
        """Run the system's own demo through the published ports."""
        self._stack.print_line("the demo, through the published port")
        ingress = self._deployment.nodes[self._deployment.ingress[0]]
        addresses = [
            f"127.0.0.1:{port}" for port in self._list_published_ports(ingress, ingress.port_variable)
        ]
        nodes = [self._deployment.nodes[name] for name in self._deployment.ingress]
        urls = {
            node.name: f"https://127.0.0.1:{self._list_published_ports(node, node.http.port_variable)[0]}"
            for node in nodes
            if node.http is not None
        }
        demo = importlib.import_module(f"handlers.{self._system.name}.demo")
        credentials = self._make_credentials(getattr(demo, "PRINCIPAL", None))

        async def run() -> bool:
            async with connect(self._system, addresses, urls=urls, **credentials) as client:
                return bool(await demo.demo(client, self._stack.console) == 0)

        if not asyncio.run(run()):
            raise SystemExit("The demo failed.")

    def check_http(self) -> None:
        """Check HTTPS: readiness needs no credentials, and a listing needs a proven caller."""
        ingress = self._deployment.nodes[self._deployment.ingress[0]]
        if ingress.http is None:
            return
        ports = self._list_published_ports(ingress, ingress.http.port_variable)
        credentials = self._make_credentials()
        context = ssl.create_default_context(cafile=credentials["ca_file"])
        for port in ports:
            self._require_status(f"https://127.0.0.1:{port}/readyz", context, 200)
        route = next(
            method.route.path
            for name in ingress.serves
            for method in self._system.services[name].methods
            if method.route is not None and method.route.method == "GET" and "{" not in method.route.path
        )
        self._require_status(f"https://127.0.0.1:{ports[0]}{route}", context, 401)
        context.load_cert_chain(credentials["cert_file"], credentials["key_file"])
        for port in ports:
            self._require_status(f"https://127.0.0.1:{port}{route}", context, 200)

    def _require_status(self, url: str, context: ssl.SSLContext, status: int) -> None:
        try:
            with urllib.request.urlopen(url, context=context, timeout=10) as answer:
                answered = answer.status
        except urllib.error.HTTPError as error:
            answered = error.code
        self._stack.print_line(f"GET {url}: {answered}")
        if answered != status:
            raise SystemExit(f"{url} answered {answered} instead of {status}.")

    def _make_credentials(self, principal: str | None = None) -> dict[str, Any]:
        """Make the credentials of an outside caller: the authority, and a certificate where one is needed."""
        files = {"ca_file": str(self._stack.certificates / "ca.crt")}
        for name in [principal] if principal else outside_principals(self._system):
            if "certificate" in self._system.principals[name].proofs:
                files["cert_file"] = str(self._stack.certificates / f"{name}.crt")
                files["key_file"] = str(self._stack.certificates / f"{name}.key")
                break
        return files

    def check_denial(self) -> None:
        """Check that a node is denied a call that the matrix does not permit, with its valid certificate."""
        node, principal, variable, method = self._find_forbidden_call()
        component = self._system.services[method.service.rpartition(".")[2]].component
        files = [f"$TLS_{kind}_FILE" for kind in ("CERT", "KEY", "CA")]
        arguments = f"{' '.join(files)} ${variable} {component}.{self._system.name} {method.path}"
        answer = self._stack.run("exec", "-T", node, "sh", "-c", f'python -c "$0" {arguments}', DENIAL)
        self._stack.print_line(f"{principal} calls {method}: {answer.strip()}")
        if not answer.startswith("PERMISSION_DENIED"):
            raise SystemExit(f"{principal} was not denied {method}.")

    def fail_over(self) -> None:
        """Kill the Redis master, and wait until the sentinels have elected another one."""
        before = self._read_master()
        self._stack.print_line(f"kill of the master, {before}")
        self._stack.run("kill", "redis")
        self._stack.wait_until(
            lambda: self._read_master() != before, lambda: "The sentinels chose no other master."
        )
        self._stack.print_line(f"{self._read_master()} is the master now")

    def _read_master(self) -> str:
        ask = ("redis-cli", "-p", "26379", "sentinel", "get-master-addr-by-name", self._system.name)
        return self._stack.run("exec", "-T", "sentinel-0", *ask).split()[0]

    def _find_forbidden_call(self) -> tuple[str, str, str, Method]:
        """Find a node, its principal, a variable with an upstream address, and a denied method there."""
        for node in self._deployment.nodes.values():
            for variable, target in node.upstreams.items():
                for method in self._list_methods(self._deployment.nodes[target]):
                    if node.hosts[0] not in self._system.matrix[method.path]:
                        return self._stack.list_services(node.name)[0], node.hosts[0], variable, method
        raise LookupError("no node of this deployment can reach a method that it may not call")

    def _list_methods(self, node: Node) -> list[Method]:
        return [method for name in node.serves for method in self._system.services[name].methods]

    def _list_published_ports(self, node: Node, variable: str | None) -> list[int]:
        """List the published ports for the port variable of an ingress node."""
        name = variable or ""
        inside = os.environ.get(name) or node.defaults.get(name) or self._system.variables[name].default
        return self._stack.list_published_ports(inside or "")


def main(arguments: Sequence[str]) -> int:
    """Prove one deployment; return 0 if all checks pass."""
    options = [each for each in arguments if each.startswith("--")]
    names = [part for each in arguments if each not in options for part in each.split(".")]
    if len(names) != 2 or options not in ([], [SENTINEL]):
        print(f"usage: python -m scripts.compose_proof <system>.<deployment> [{SENTINEL}]", file=sys.stderr)
        return 2
    files = (COMPOSE, *(("compose.sentinel.yaml",) if options else ()))
    system = load_system(names[0])
    deployment = system.deployments[names[1]]
    with tempfile.TemporaryDirectory(prefix="charter-certs-") as folder:
        certificates = Path(folder)
        make_certificates(system, deployment.name, certificates)
        make_certificates_readable(certificates)
        stack = Stack(system, deployment, Console(), certificates, files)
        try:
            stack.up()
            if deployment.ingress:
                IngressProof(stack).prove(with_failover=bool(options))
            else:
                StoreProof(stack).prove()
        finally:
            stack.down()
    return 0


def make_certificates_readable(folder: Path) -> None:
    """Let the user of the containers read certificates: they see the owner and mode that files have here."""
    if os.geteuid() == 0:
        for each in (folder, *folder.iterdir()):
            os.chown(each, IMAGE_USER, IMAGE_USER)
    else:
        os.environ["RUN_AS"] = f"{os.getuid()}:{os.getgid()}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
