"""The commands of the queue: submit a binary with its input, wait, and fetch the output."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote

import click
import httpx
from rich.console import Console

from generated.queuey.deployments import LOCAL
from handlers.queuey import samples
from handlers.queuey.blob_client import (
    BlobClient,
    BlobCorrupt,
    BlobMissing,
    BlobRefused,
    StoreUnavailable,
    choose_tls_verification,
)
from runtime.cli.location import find_nodes, make_search_target, url_to_place
from runtime.cli.place_types import AuthorityFile, Token, Url
from runtime.cli.values import Number

Answer = TypeVar("Answer")

_WAIT_MS = 15_000
_ENDED = ("completed", "failed")
FAILED = 1
"""The exit code where a job failed."""
NOT_ENDED = 3
"""The exit code where the time is over before a job ended."""


class ServiceError(click.ClickException):
    """A service was not found, or refused a request."""

    exit_code = 2


class QueueClient:
    """The HTTP client of the queue."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def submit(self, binary: str, input_addr: str | None, key: str | None) -> dict[str, Any]:
        body = {"binary_addr": binary, "input_addr": input_addr, "idempotency_key": key}
        return await self._request("POST", "/jobs/create", body)

    async def wait_for_end(self, job_id: str, seconds: float | None) -> dict[str, Any]:
        """Wait until a job has ended or the time is over; return it."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        while True:
            left = (
                _WAIT_MS if deadline is None else max(0, min(_WAIT_MS, int((deadline - loop.time()) * 1000)))
            )
            job = await self._request("GET", f"/jobs/{quote(job_id, safe='')}?wait_ms={left}")
            if job["status"] in _ENDED or (deadline is not None and loop.time() >= deadline):
                return job

    async def report(self, job_id: str) -> dict[str, Any]:
        return await self._request("GET", f"/jobs/{quote(job_id, safe='')}/report")

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        try:
            response = await self._client.request(method, path, json=body)
        except httpx.HTTPError:
            raise ServiceError(f"The queue does not answer at {self._client.base_url}.") from None
        try:
            found: dict[str, Any] = response.json()
            if not response.is_success:
                raise ServiceError(f"The queue says no: {found['error']['message']}.")
        except (ValueError, LookupError, TypeError):
            raise ServiceError(f"What answers is no queue: it says {response.status_code}.") from None
        return found


def _service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that locate the services to a command."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option(
            "--token",
            envvar=["CLIENT_TOKEN", "CHARTER_TOKEN"],
            type=Token(),
            help="What proves you, where there are tokens; or CLIENT_TOKEN, CHARTER_TOKEN.",
        ),
        click.option(
            "--ca",
            envvar="CHARTER_CA_FILE",
            type=AuthorityFile(),
            help="The authority behind the certificates of the services, where they speak TLS.",
        ),
        click.option(
            "--deployment",
            envvar="DEPLOYMENT_NAME",
            metavar="NAME",
            help="Name of the deployment, where the network has several.",
        ),
        click.option(
            "--store", envvar="STORE_URL", type=Url(), help="URL of the store; else it is looked for."
        ),
        click.option(
            "--queue", envvar="QUEUE_URL", type=Url(), help="URL of the queue; else it is looked for."
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("binary", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--input", "input_path", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Input file."
)
@click.option("--key", help="A second submission under the same key finds the first.")
@_service_options
def submit(
    binary: Path, input_path: Path | None, key: str | None, as_json: bool, **services: str | None
) -> None:
    """Submit a WASI binary; what it reads comes from a file or from this command's input."""

    async def work(queue: QueueClient, store: BlobClient) -> dict[str, Any]:
        return await _submit(queue, store, binary, input_path, key)

    job = _run(work, services)
    click.echo(json.dumps(job) if as_json else job["job_id"])


@click.command()
@click.argument("job_id")
@click.option("--seconds", type=Number(), help="How long to wait; as long as it takes unless said.")
@_service_options
def wait(job_id: str, seconds: float | None, as_json: bool, **services: str | None) -> None:
    """Wait until a job has ended.

    The exit code is 0 if it completed, 1 if it failed, and 3 if the time was over first.
    """

    async def work(queue: QueueClient, _store: BlobClient) -> dict[str, Any]:
        return await queue.wait_for_end(job_id, seconds)

    job = _run(work, services, needs_store=False)
    click.echo(json.dumps(job) if as_json else job["status"])
    sys.exit({"completed": 0, "failed": FAILED}.get(job["status"], NOT_ENDED))


@click.command()
@click.argument("job_id")
@click.option("--errors", is_flag=True, help="What it complained of, instead of what it wrote.")
@_service_options
def output(job_id: str, errors: bool, as_json: bool, **services: str | None) -> None:
    """Write the output of a job that has ended to this command's output."""
    del as_json

    async def work(queue: QueueClient, store: BlobClient) -> None:
        job, report = await queue.wait_for_end(job_id, 0), await queue.report(job_id)
        address = report["stderr_addr"] if errors else job["output_addr"]
        if address is not None:
            await _write_content(store, address)
        elif job["status"] not in _ENDED:
            raise ServiceError(f"The job is {job['status']}; it has no output yet.")

    _run(work, services)


@click.command()
@click.argument("binary", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--input", "input_path", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Input file."
)
@_service_options
def run(binary: Path, input_path: Path | None, as_json: bool, **services: str | None) -> None:
    """Submit a binary, wait for its end, and write its output and its complaints.

    The exit code is the binary's own. The id of the job is the first line on standard error.
    """

    async def work(queue: QueueClient, store: BlobClient) -> int:
        job = await _submit(queue, store, binary, input_path, None)
        click.echo(f"job {job['job_id']}", err=True)
        with Console(stderr=True).status(f"job {job['job_id']}"):
            ended, report = await queue.wait_for_end(job["job_id"], None), await queue.report(job["job_id"])
        if ended["output_addr"] is not None:
            await _write_content(store, ended["output_addr"])
        if report["stderr_addr"] is not None:
            await _write_content(store, report["stderr_addr"], sys.stderr.buffer)
        if ended["status"] == "completed":
            return 0
        click.echo(json.dumps(report) if as_json else f"failed: {report['reason']}", err=True)
        return report["exit_code"] or FAILED

    sys.exit(_run(work, services))


@click.command()
@click.argument("name", required=False)
def sample(name: str | None) -> None:
    """Write a small WASI binary to this command's output; without a NAME, list them."""
    if name is None:
        click.echo("\n".join(samples.names()))
        return
    if name not in samples.names():
        raise click.UsageError(f"There is no sample {name!r}. There are {', '.join(samples.names())}.")
    sys.stdout.buffer.write(samples.binary(name))
    sys.stdout.buffer.flush()


async def _submit(
    queue: QueueClient, store: BlobClient, binary: Path, input_path: Path | None, key: str | None
) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile() as stdin_file:
        if input_path is None and not sys.stdin.isatty():
            stdin_file.write(await asyncio.to_thread(sys.stdin.buffer.read))
            stdin_file.flush()
            input_path = Path(stdin_file.name)
        address = await store.put(input_path) if input_path is not None else None
        return await queue.submit(await store.put(binary), address, key)


async def _write_content(store: BlobClient, address: str, target: BinaryIO | None = None) -> None:
    """Write content to a stream, standard output unless another is given."""
    target = target or sys.stdout.buffer
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content"
        await store.get(address, path)
        with path.open("rb") as source:
            while chunk := source.read(1 << 18):
                target.write(chunk)
        target.flush()


def _run(
    work: Callable[[QueueClient, BlobClient], Awaitable[Answer]],
    services: Mapping[str, str | None],
    *,
    needs_store: bool = True,
) -> Answer:
    async def main() -> Answer:
        urls = await _find_urls(services, ("queue", "store") if needs_store else ("queue",))
        queue_url, store_url = urls["queue"], urls.get("store", urls["queue"])
        token = services["token"]
        headers = {"authorization": f"Bearer {token}"} if token else {}
        tls = ssl.create_default_context(cafile=services["ca"]) if services["ca"] else None
        async with (
            httpx.AsyncClient(
                base_url=queue_url,
                headers=headers,
                timeout=30.0,
                verify=choose_tls_verification(queue_url, tls),
            ) as client,
            BlobClient(store_url, token, tls) as store,
        ):
            return await work(QueueClient(client), store)

    try:
        return asyncio.run(main())
    except BlobMissing as missing:
        raise ServiceError(f"The store has nothing under {missing}.") from None
    except BlobCorrupt as corrupt:
        raise ServiceError(f"What the store has under {corrupt} is not its content any more.") from None
    except StoreUnavailable:
        raise ServiceError("The store does not answer as it should: check --store or STORE_URL.") from None
    except BlobRefused as refused:
        raise ServiceError(f"The store refuses: {refused}.") from None


async def _find_urls(services: Mapping[str, str | None], needed: Sequence[str]) -> dict[str, str]:
    """Find the URLs of the needed services: as given, or as nodes of one deployment announce them."""
    known_urls = {node: url for node in needed if (url := services[node])}
    missing = [node for node in needed if node not in known_urls]
    if not missing:
        return known_urls
    name = services["deployment"]
    sought = {node: make_search_target(LOCAL.nodes[node], "http_port", {}) for node in missing}
    if not name:
        # The given URLs decide which deployment is meant.
        known = {node: {"http_port": url_to_place(url)} for node, url in known_urls.items()}
        sought |= {
            node: make_search_target(LOCAL.nodes[node], "http_port", known[node]) for node in known_urls
        }
    options = " and ".join(f"--{node} or {node.upper()}_URL" for node in missing)
    offers = await find_nodes(sought, name, options, "DEPLOYMENT_NAME")
    found = {
        node: f"http://{offers[node].address}:{offers[node].properties['http_port']}" for node in missing
    }
    return known_urls | found


COMMANDS: dict[str, click.Command] = {
    "run": run,
    "submit": submit,
    "wait": wait,
    "output": output,
    "sample": sample,
}
